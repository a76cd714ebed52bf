! ghost_f90.f90 - as ghost_families.c, for MPI's Fortran interface of 1997 (use mpi).
!
! Usage: mpiexec -n 3 ghost_f90 FOLDER
program ghost_f90
  use mpi
  use iso_c_binding
  implicit none
  integer, parameter :: families = 8, block = 24
  interface
    subroutine ghost_checkpoint_to(name, memory, bytes) bind(c)
      import :: c_char, c_ptr, c_size_t
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: memory
      integer(c_size_t), value :: bytes
    end subroutine
  end interface
  real(8), target, save :: state(block, families)
  integer :: rank, ranks, left, right, ierror, i, every_second, window
  integer :: requests(2), statuses(MPI_STATUS_SIZE, 2), status(MPI_STATUS_SIZE)
  character(len=1000) :: folder
  character(len=32) :: number

  call mpi_init(ierror)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierror)
  call mpi_comm_size(MPI_COMM_WORLD, ranks, ierror)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  call mpi_type_vector(3, 1, 2, MPI_DOUBLE_PRECISION, every_second, ierror)
  call mpi_type_commit(every_second, ierror)
  call get_command_argument(1, folder)
  if (rank == 0) then
    open(10, file=trim(folder)//'/families')
    write(10, '(a)') 'send_recv', 'isend_irecv', 'sendrecv', 'vector', 'persistent', 'in_place', &
        'gather', 'window'
    close(10)
  end if
  do i = 1, families
    state(:, i) = rank
  end do
  write(number, '(i0)') rank
  call ghost_checkpoint_to(trim(folder)//'/state.'//trim(number)//c_null_char, c_loc(state), &
      int(8 * block * families, c_size_t))

  ! send_recv
  if (rank == 0) call mpi_send(state(1, 1), 2, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, ierror)
  call mpi_recv(state(9, 1), 4, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, status, ierror)
  if (rank /= 0) call mpi_send(state(1, 1), 2, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, ierror)
  ! isend_irecv
  call mpi_irecv(state(9, 2), 4, MPI_DOUBLE_PRECISION, left, 2, MPI_COMM_WORLD, requests(1), ierror)
  call mpi_isend(state(1, 2), 2, MPI_DOUBLE_PRECISION, right, 2, MPI_COMM_WORLD, requests(2), ierror)
  call mpi_waitall(2, requests, statuses, ierror)
  ! sendrecv
  call mpi_sendrecv(state(1, 3), 2, MPI_DOUBLE_PRECISION, right, 3, state(9, 3), 4, &
      MPI_DOUBLE_PRECISION, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  ! vector
  call mpi_irecv(state(9, 4), 1, every_second, left, 4, MPI_COMM_WORLD, requests(1), ierror)
  call mpi_ssend(state(1, 4), 1, every_second, right, 4, MPI_COMM_WORLD, ierror)
  call mpi_wait(requests(1), MPI_STATUS_IGNORE, ierror)
  ! persistent
  call mpi_recv_init(state(9, 5), 4, MPI_DOUBLE_PRECISION, left, 5, MPI_COMM_WORLD, requests(1), ierror)
  call mpi_send_init(state(1, 5), 2, MPI_DOUBLE_PRECISION, right, 5, MPI_COMM_WORLD, requests(2), ierror)
  call mpi_startall(2, requests, ierror)
  call mpi_waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
  call mpi_request_free(requests(1), ierror)
  call mpi_request_free(requests(2), ierror)
  ! in_place
  call mpi_allreduce(MPI_IN_PLACE, state(1, 6), 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  call mpi_allgather(MPI_IN_PLACE, 0, MPI_DOUBLE_PRECISION, state(9, 6), 2, MPI_DOUBLE_PRECISION, &
      MPI_COMM_WORLD, ierror)
  ! gather
  call mpi_gather(state(1, 7), 2, MPI_DOUBLE_PRECISION, state(9, 7), 2, MPI_DOUBLE_PRECISION, 0, &
      MPI_COMM_WORLD, ierror)
  ! window
  call mpi_win_create(state(17, 8), int(32, MPI_ADDRESS_KIND), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &
      window, ierror)
  call mpi_win_fence(0, window, ierror)
  call mpi_put(state(1, 8), 1, MPI_DOUBLE_PRECISION, right, int(0, MPI_ADDRESS_KIND), 1, &
      MPI_DOUBLE_PRECISION, window, ierror)
  call mpi_get(state(9, 8), 1, MPI_DOUBLE_PRECISION, right, int(2, MPI_ADDRESS_KIND), 1, &
      MPI_DOUBLE_PRECISION, window, ierror)
  call mpi_win_fence(0, window, ierror)
  call mpi_win_free(window, ierror)
  call mpi_finalize(ierror)
end program
