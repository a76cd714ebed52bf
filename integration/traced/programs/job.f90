! job.f90 - what the Fortran programs of this folder do around their own state; the counterpart of job.h.
! MPI's C functions are called by bind(C): some MPIs come without Fortran.
module job
    use, intrinsic :: iso_c_binding
    implicit none
    include 'scrf.h'
    private
    public :: job_start, job_restarting, job_restarted, job_must_save, job_open, job_saved, job_path, job_end

    integer, parameter, public :: STEPS = 7
    character(len=SCR_MAX_FILENAME) :: dataset

    interface
        integer(c_int) function mpi_init_c(argc, argv) bind(C, name='MPI_Init')
            import :: c_int, c_ptr
            type(c_ptr), value :: argc, argv
        end function
        integer(c_int) function mpi_finalize_c() bind(C, name='MPI_Finalize')
            import :: c_int
        end function
    end interface

contains

    subroutine must(code, what)
        integer, intent(in) :: code
        character(len=*), intent(in) :: what
        if (code /= SCR_SUCCESS) then
            print '(2a)', 'failed: ', what
            error stop 1
        end if
    end subroutine must

    subroutine job_start()
        integer :: error
        error = mpi_init_c(c_null_ptr, c_null_ptr)
        call scr_init(error)
        call must(error, 'scr_init')
    end subroutine job_start

    logical function job_restarting()
        integer :: flag, error
        call scr_have_restart(flag, dataset, error)
        job_restarting = flag == 1
        if (job_restarting) then
            call scr_start_restart(dataset, error)
            call must(error, 'scr_start_restart')
        end if
    end function job_restarting

    subroutine job_restarted()
        integer :: error
        call scr_complete_restart(1, error)
        call must(error, 'scr_complete_restart')
    end subroutine job_restarted

    logical function job_must_save()
        integer :: flag, error
        call scr_need_checkpoint(flag, error)
        job_must_save = flag == 1
    end function job_must_save

    subroutine job_open(step)
        integer(c_int64_t), intent(in) :: step
        integer :: error
        write (dataset, '(a,i0)') 'ckpt.', step
        call scr_start_output(trim(dataset), SCR_FLAG_CHECKPOINT, error)
        call must(error, 'scr_start_output')
    end subroutine job_open

    subroutine job_saved()
        integer :: error
        call scr_complete_output(1, error)
        call must(error, 'scr_complete_output')
    end subroutine job_saved

    function job_path(name) result(path)
        character(len=*), intent(in) :: name
        character(len=SCR_MAX_FILENAME) :: path
        integer :: error
        call scr_route_file(trim(dataset)//'/'//name//'.0', path, error)
        call must(error, 'scr_route_file')
    end function job_path

    ! The digest of a Fortran program: the bits of a sum over what it still needs.
    subroutine job_end(total)
        real(c_double), intent(in) :: total
        integer :: error
        print '(a,z16.16)', 'digest 0 ', transfer(total, 0_c_int64_t)
        call scr_finalize(error)
        error = mpi_finalize_c()
    end subroutine job_end
end module job
