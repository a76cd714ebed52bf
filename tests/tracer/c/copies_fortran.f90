! copies_fortran.f90 - a state written by gfortran's stream output.
module copies_fortran
  use iso_c_binding
  implicit none
  real(c_double), target :: state(8, 12)
  real(c_double), volatile :: sink
  interface
    subroutine part_path(name, path) bind(c)
      import :: c_char
      character(kind=c_char), intent(in) :: name(*)
      character(kind=c_char), intent(out) :: path(*)
    end subroutine
  end interface
contains
  subroutine prepare() bind(c)
    integer :: i, j
    do j = 1, 12
      do i = 1, 8
        state(i, j) = 10 * i + j
      end do
    end do
  end subroutine

  subroutine write_parts() bind(c)
    character(kind=c_char) :: path(1024)
    character(len=1024) :: name
    integer :: n, unit
    call part_path('sections' // c_null_char, path)
    name = ' '
    n = 1
    do while (path(n) /= c_null_char)
      name(n:n) = path(n)
      n = n + 1
    end do
    open(newunit=unit, file=trim(name), access='stream', form='unformatted', status='replace')
    write(unit) state(2:7, 1:12:3)
    write(unit) reshape(state(8:1:-1, 5), [4, 2])
    write(unit) transpose(state(1:3, 1:4))
    close(unit)
  end subroutine

  ! As in copies.h: elements with odd index (from 0) are read, all are overwritten.
  subroutine go_on() bind(c)
    integer :: i, j
    real(c_double), volatile, pointer :: at
    do j = 1, 12
      do i = 1, 8
        at => state(i, j)
        if (mod(i, 2) == 0) sink = at
        at = 0
      end do
    end do
  end subroutine
end module
