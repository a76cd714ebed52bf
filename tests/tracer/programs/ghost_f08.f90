! ghost_f08.f90 - as ghost_families.c, for MPI's Fortran interface of 2008 (use mpi_f08).
!
! Usage: mpiexec -n 3 ghost_f08 FOLDER
program ghost_f08
  use mpi_f08
  use iso_c_binding
  implicit none
  integer, parameter :: families = 5, block = 24
  interface
    subroutine ghost_checkpoint_to(name, memory, bytes) bind(c)
      import :: c_char, c_ptr, c_size_t
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: memory
      integer(c_size_t), value :: bytes
    end subroutine
  end interface
  real(8), target, save, asynchronous :: state(block, families)
  integer :: rank, ranks, left, right, i
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: status
  character(len=1000) :: folder
  character(len=32) :: number

  call mpi_init()
  call mpi_comm_rank(MPI_COMM_WORLD, rank)
  call mpi_comm_size(MPI_COMM_WORLD, ranks)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  call get_command_argument(1, folder)
  if (rank == 0) then
    open(10, file=trim(folder)//'/families')
    write(10, '(a)') 'send_recv', 'isend_irecv', 'section', 'in_place', 'reduce'
    close(10)
  end if
  do i = 1, families
    state(:, i) = rank
  end do
  write(number, '(i0)') rank
  call ghost_checkpoint_to(trim(folder)//'/state.'//trim(number)//c_null_char, c_loc(state), &
      int(8 * block * families, c_size_t))

  ! send_recv
  if (rank == 0) call mpi_send(state(1:2, 1), 2, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD)
  call mpi_recv(state(9:12, 1), 4, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, status)
  if (rank /= 0) call mpi_send(state(1:2, 1), 2, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD)
  ! isend_irecv
  call mpi_irecv(state(9:12, 2), 4, MPI_DOUBLE_PRECISION, left, 2, MPI_COMM_WORLD, requests(1))
  call mpi_isend(state(1:2, 2), 2, MPI_DOUBLE_PRECISION, right, 2, MPI_COMM_WORLD, requests(2))
  call mpi_waitall(2, requests, MPI_STATUSES_IGNORE)
  ! section: every second element is sent
  if (rank == 0) call mpi_send(state(1:5:2, 3), 3, MPI_DOUBLE_PRECISION, right, 3, MPI_COMM_WORLD)
  call mpi_recv(state(9:11, 3), 3, MPI_DOUBLE_PRECISION, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  if (rank /= 0) call mpi_send(state(1:5:2, 3), 3, MPI_DOUBLE_PRECISION, right, 3, MPI_COMM_WORLD)
  ! in_place
  call mpi_allreduce(MPI_IN_PLACE, state(1:2, 4), 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  ! reduce
  call mpi_reduce(state(1:2, 5), state(9:10, 5), 2, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD)
  call mpi_finalize()
end program
