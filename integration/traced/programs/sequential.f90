! sequential: unformatted sequential records, each between two markers of four bytes.
!
! The markers are critical: libgfortran computes them, and checks them when it reads. The records:
!   1  step  integer(8)         critical
!   2  a     real(8) 500 x 40   a(:, 1) dead (set first), else critical; larger than the unit's buffer
!   3  b     real(8) 6 x 12     the section b(2:12:2, :) of b(13, 12): b(2, :) and b(12, :) dead, else critical
!      s     real(4) 30         in the same record: s(1:10) dead, s(11:30) critical
!   4  z     complex(8) 25      the real parts dead (set first), the imaginary parts critical
module fields
    use, intrinsic :: iso_c_binding
    implicit none
    integer(c_int64_t) :: step = 0
    real(c_double) :: a(500, 40), b(13, 12)
    real(c_float) :: s(30)
    complex(c_double_complex) :: z(25)
end module fields

program sequential
    use fields
    use job
    implicit none

    call job_start()
    a = 1
    b = 2
    s = 3
    z = (4, 5)
    if (job_restarting()) then
        call restore()
        call job_restarted()
    end if
    do while (step < STEPS)
        call take_step()
        if (job_must_save()) then
            call job_open(step)
            call save_state()
            call job_saved()
        end if
    end do
    call job_end(sum(a) + sum(b(4:10:2, :)) + sum(s) + sum(aimag(z)))

contains

    subroutine take_step()
        integer :: i, j
        step = step + 1
        a(:, 1) = step
        do j = 2, 40
            do i = 1, 500
                a(i, j) = 0.5d0 * a(i, j) + a(i, 1) * j
            end do
        end do
        b(2, :) = step
        b(12, :) = 3
        do j = 1, 12
            do i = 4, 10, 2
                b(i, j) = 0.25d0 * b(i, j) + b(2, j) + b(12, j)
            end do
        end do
        s(1:10) = real(step, c_float)
        s(11:20) = 0.5 * s(11:20) + s(1:10)
        s(21:30) = 0.5 * s(21:30) + s(1:10)
        do i = 1, 25
            z(i)%re = step
        end do
        do i = 1, 25
            z(i)%im = 0.5d0 * z(i)%im + z(i)%re
        end do
    end subroutine take_step

    subroutine save_state()
        integer :: unit
        open (newunit=unit, file=trim(job_path('state')), form='unformatted', status='replace', action='write')
        write (unit) step
        write (unit) a
        write (unit) b(2:12:2, :), s
        write (unit) z
        close (unit)
    end subroutine save_state

    subroutine restore()
        integer :: unit
        open (newunit=unit, file=trim(job_path('state')), form='unformatted', status='old', action='read')
        read (unit) step
        read (unit) a
        read (unit) b(2:12:2, :), s
        read (unit) z
        close (unit)
    end subroutine restore
end program sequential
