! fortran_program.f90 - writes a checkpoint, or restarts from it, through SCR's Fortran interface,
! for test_scr_local.py. MPI's C functions are called by bind(C): some MPIs come without Fortran.
! Prints "wrote NAME", "read NAME" or "failed WHAT".
program fortran_program
    use, intrinsic :: iso_c_binding
    implicit none
    include 'scrf.h'

    interface
        integer(c_int) function mpi_init_c(argc, argv) bind(C, name='MPI_Init')
            import :: c_int, c_ptr
            type(c_ptr), value :: argc, argv
        end function
        integer(c_int) function mpi_finalize_c() bind(C, name='MPI_Finalize')
            import :: c_int
        end function
    end interface

    integer :: error, flag, unit, found
    character(len=SCR_MAX_FILENAME) :: file
    character(len=40) :: name

    error = mpi_init_c(c_null_ptr, c_null_ptr)
    call scr_init(error)
    call check(error, 'scr_init')
    call scr_have_restart(flag, name, error)
    call check(error, 'scr_have_restart')

    if (flag == 1) then
        call scr_start_restart(name, error)
        call check(error, 'scr_start_restart')
        call scr_route_file('state of fortran.bin', file, error)
        call check(error, 'scr_route_file')
        open (newunit=unit, file=trim(file), access='stream', status='old', action='read')
        read (unit) found
        close (unit)
        if (found /= 4711) error = 1
        call check(error, 'content')
        call scr_complete_restart(1, error)
        call check(error, 'scr_complete_restart')
        print '(2a)', 'read ', trim(name)
    else
        call scr_start_output('fortran checkpoint', SCR_FLAG_CHECKPOINT, error)
        call check(error, 'scr_start_output')
        call scr_route_file('state of fortran.bin', file, error)
        call check(error, 'scr_route_file')
        open (newunit=unit, file=trim(file), access='stream', status='replace', action='write')
        write (unit) 4711
        close (unit)
        call scr_complete_output(1, error)
        call check(error, 'scr_complete_output')
        print '(a)', 'wrote fortran checkpoint'
    end if

    call scr_finalize(error)
    call check(error, 'scr_finalize')
    error = mpi_finalize_c()

contains

    subroutine check(code, what)
        integer, intent(in) :: code
        character(len=*), intent(in) :: what
        if (code /= SCR_SUCCESS) print '(2a)', 'failed ', what
    end subroutine check
end program fortran_program
