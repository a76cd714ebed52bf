! stream: stream access, of module arrays, array sections, an allocatable and a COMMON block.
!
! The file:
!   step   integer(8)        critical
!   u      real(8) 12 x 10   the section u(2:13, :) of u(14, 10), column by column: columns 1 and 10 dead
!                            (refilled from columns 9 and 2 before they are read), else critical
!   v      real(8) 20 x 30   allocatable, whole: column 1 and row 1 dead (set first), else critical
!   c      real(8) 40        COMMON: c(1:20) dead (set first), c(21:40) critical
!   k      integer(4) 5      COMMON, behind c: unused
!   w      real(8) 600       allocatable, whole: dead (zeroed first)
module fields
    use, intrinsic :: iso_c_binding
    implicit none
    integer, parameter :: n = 14, m = 10
    integer(c_int64_t) :: step = 0
    real(c_double) :: u(n, m)
    real(c_double), allocatable :: v(:, :), w(:)
end module fields

program stream
    use fields
    use job
    implicit none
    real(c_double) :: c(40)
    integer(c_int32_t) :: k(5)
    common /shared/ c, k
    integer :: i, j

    call job_start()
    allocate (v(20, 30), w(600))
    do j = 1, m
        do i = 1, n
            u(i, j) = mod(i * j, 7)
        end do
    end do
    v = 1
    w = 0
    c = 2
    k = 3
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
    call job_end(sum(u(2:n - 1, :)) + sum(v) + sum(c))

contains

    subroutine take_step()
        integer :: i, j
        step = step + 1
        u(2:n - 1, 1) = u(2:n - 1, m - 1)
        u(2:n - 1, m) = u(2:n - 1, 2)
        u(1, :) = 0
        u(n, :) = 0
        do j = 2, m - 1
            do i = 2, n - 1
                u(i, j) = 0.5d0 * u(i, j) + 0.1d0 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1))
            end do
        end do
        v(:, 1) = step
        v(1, :) = 2 * step
        w = 0
        do j = 2, 30
            do i = 2, 20
                v(i, j) = 0.5d0 * v(i, j) + v(1, j) + v(i, 1)
                w(i * j) = w(i * j) + v(i, j)
            end do
        end do
        c(1:20) = w(1:20)
        c(21:40) = 0.5d0 * c(21:40) + c(1:20)
    end subroutine take_step

    subroutine save_state()
        integer :: unit
        open (newunit=unit, file=trim(job_path('state')), access='stream', form='unformatted', &
              status='replace', action='write')
        write (unit) step
        write (unit) u(2:n - 1, :)
        write (unit) v, c, k
        write (unit) w
        close (unit)
    end subroutine save_state

    subroutine restore()
        integer :: unit
        open (newunit=unit, file=trim(job_path('state')), access='stream', form='unformatted', &
              status='old', action='read')
        read (unit) step
        read (unit) u(2:n - 1, :)
        read (unit) v, c, k
        read (unit) w
        close (unit)
    end subroutine restore
end program stream
