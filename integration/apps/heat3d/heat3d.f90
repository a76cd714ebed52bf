! heat3d in Fortran: the program of heat3d.c, statement by statement where it computes, so that both
! print the same digest for the same grid.  See heat3d.c for the method and for why ghosts and
! scratch are dead at every checkpoint; README.md describes the file.  Tests: test_heat3d.py.
!
! May use: MPI (use mpi), SCR's Fortran interface (scrf.h), libc's raise and usleep.
! Arrays are in Fortran order and the magic word says so: neither program reads the other's files.
module heat3d_block
    use, intrinsic :: iso_fortran_env, only: int32, int64, real64, error_unit
    use mpi
    implicit none
    private
    public :: options_t, block_t, create_block, free_block, fail
    integer, parameter, public :: ghosts = 2, default_edge = 28
    real(real64), parameter, public :: diffusivity(2) = [0.02_real64, 0.01_real64]
    real(real64), parameter, public :: velocity(3) = [1.0_real64, 0.5_real64, -0.25_real64]
    real(real64), parameter :: pi = 3.14159265358979323846_real64

    type :: options_t
        integer :: global(3) = 0              ! 0: a cube of default_edge cells per rank
        integer(int64) :: steps = 60, every = 10
        integer(int64) :: die_at = 0, die_in_checkpoint = 0 ! 0: never
        integer(int64) :: rank_die = 0, sleep_ms = 0
        logical :: legacy = .false., help = .false.
    end type options_t

    ! One rank's block: interior sizes, place in the global grid, neighbours.
    type :: block_t
        integer :: cart, rank, ranks
        integer(int32) :: interior(3), offset(3), global(3)
        integer :: allocated(3), lower(3), upper(3)
        real(real64) :: spacing(3), dt
        real(real64), allocatable :: profile_x(:), profile_y(:), profile_z(:)
    end type block_t

contains

    subroutine fail(text)
        character(*), intent(in) :: text
        integer :: rank, ierr
        call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
        write (error_unit, '(a,i0,2a)') 'heat3d: rank ', rank, ': ', text
        call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
        error stop
    end subroutine fail

    subroutine place_axis(b, axis, parts, part)
        type(block_t), intent(inout) :: b
        integer, intent(in) :: axis, parts, part
        character(160) :: text
        integer :: share, rest
        share = b%global(axis)/parts
        rest = mod(b%global(axis), parts)
        if (share < ghosts) then
            write (text, '(4(a,i0),a)') 'axis ', axis - 1, ' has ', b%global(axis), ' cells for ', &
                parts, ' blocks; each needs at least ', ghosts, ': use a larger --n or fewer ranks'
            call fail(trim(text))
        end if
        b%interior(axis) = share + merge(1, 0, part < rest)
        b%offset(axis) = part*share + min(part, rest)
        b%allocated(axis) = b%interior(axis) + 2*ghosts
        b%spacing(axis) = 1.0_real64/b%global(axis)
    end subroutine place_axis

    ! sin^2(pi x) at the interior cell centres of an axis.
    function axis_profile(b, axis) result(profile)
        type(block_t), intent(in) :: b
        integer, intent(in) :: axis
        real(real64) :: profile(b%interior(axis)), wave
        integer :: i
        do i = 1, b%interior(axis)
            wave = sin(pi*((b%offset(axis) + (i - 1) + 0.5_real64)*b%spacing(axis)))
            profile(i) = wave*wave
        end do
    end function axis_profile

    real(real64) function stable_time_step(b) result(dt)
        type(block_t), intent(in) :: b
        real(real64) :: finest, diffusive, advective
        finest = minval(b%spacing)
        diffusive = 0.1_real64*(finest*finest)/diffusivity(1)
        advective = 0.3_real64*finest/velocity(1)
        dt = min(diffusive, advective)
    end function stable_time_step

    subroutine create_block(options, b)
        type(options_t), intent(in) :: options
        type(block_t), intent(inout) :: b
        integer :: parts(3), place(3), axis, ierr
        parts = 0
        call MPI_Comm_rank(MPI_COMM_WORLD, b%rank, ierr)
        call MPI_Comm_size(MPI_COMM_WORLD, b%ranks, ierr)
        call MPI_Dims_create(b%ranks, 3, parts, ierr)
        ! No reordering: a file belongs to the rank of MPI_COMM_WORLD that SCR knows.  Walls at both
        ! ends of the third axis.
        call MPI_Cart_create(MPI_COMM_WORLD, 3, parts, [.true., .true., .false.], .false., b%cart, ierr)
        call MPI_Cart_coords(b%cart, b%rank, 3, place, ierr)
        do axis = 1, 3
            b%global(axis) = options%global(axis)
            if (b%global(axis) == 0) b%global(axis) = parts(axis)*default_edge
            call place_axis(b, axis, parts(axis), place(axis))
            call MPI_Cart_shift(b%cart, axis - 1, 1, b%lower(axis), b%upper(axis), ierr)
        end do
        b%profile_x = axis_profile(b, 1)
        b%profile_y = axis_profile(b, 2)
        b%profile_z = axis_profile(b, 3)
        b%dt = stable_time_step(b)
    end subroutine create_block

    subroutine free_block(b)
        type(block_t), intent(inout) :: b
        integer :: ierr
        call MPI_Comm_free(b%cart, ierr)
    end subroutine free_block

end module heat3d_block

! What is computed: state, ghosts, time step, digest.  Indices 1..n are interior, 1-ghosts..n+ghosts
! are allocated, as in many Fortran codes.
module heat3d_physics
    use, intrinsic :: iso_fortran_env, only: int64, real64
    use mpi
    use heat3d_block
    implicit none
    private
    public :: state_t, allocate_state, set_initial_state, take_step, print_digest

    integer, parameter :: stages = 3
    ! Williamson's coefficients: register = decay*register + dt*rate; field = field + weight*register.
    real(real64), parameter :: decay(stages) = &
        [0.0_real64, -5.0_real64/9.0_real64, -153.0_real64/128.0_real64]
    real(real64), parameter :: weight(stages) = &
        [1.0_real64/3.0_real64, 15.0_real64/16.0_real64, 8.0_real64/15.0_real64]
    real(real64), parameter :: stage_time(stages) = &
        [0.0_real64, 1.0_real64/3.0_real64, 3.0_real64/4.0_real64]
    real(real64), parameter :: reaction_rate = 0.5_real64, forcing_frequency = 9.0_real64
    integer(int64), parameter :: fnv_basis = -3750763034362895579_int64 ! 14695981039346656037
    integer(int64), parameter :: fnv_prime = 1099511628211_int64

    type :: state_t
        real(real64), allocatable, dimension(:, :, :) :: u, c, du, dc
        integer(int64) :: step = 0
        real(real64) :: time = 0.0_real64
    end type state_t

contains

    subroutine allocate_state(b, state)
        type(block_t), intent(in) :: b
        type(state_t), intent(inout) :: state
        integer :: low, high(3), status
        low = 1 - ghosts
        high = b%interior + ghosts
        allocate (state%u(low:high(1), low:high(2), low:high(3)), stat=status)
        if (status == 0) allocate (state%c, state%du, state%dc, mold=state%u, stat=status)
        if (status /= 0) call fail('no memory for the arrays; use a smaller --n or more ranks')
    end subroutine allocate_state

    subroutine set_initial_state(b, state)
        type(block_t), intent(in) :: b
        type(state_t), intent(inout) :: state
        real(real64) :: bump
        integer :: i, j, k
        state%u = 0
        state%c = 0
        state%du = 0
        state%dc = 0
        do k = 1, b%interior(3)
            do j = 1, b%interior(2)
                do i = 1, b%interior(1)
                    bump = b%profile_x(i)*b%profile_y(j)*b%profile_z(k)
                    state%u(i, j, k) = bump
                    state%c(i, j, k) = (b%offset(3) + (k - 1) + 0.5_real64)*b%spacing(3) + 0.1_real64*bump
                end do
            end do
        end do
        state%step = 0
        state%time = 0
    end subroutine set_initial_state

    ! Both directions along one axis.  Axes already exchanged travel with their ghosts, later ones
    ! without: edges and corners are filled too, and no stale ghost is ever read.
    subroutine exchange_axis(b, axis, field)
        type(block_t), intent(in) :: b
        integer, intent(in) :: axis
        real(real64), intent(inout) :: field(1 - ghosts:, 1 - ghosts:, 1 - ghosts:)
        integer :: first(3), last(3), n
        n = b%interior(axis)
        first = 1
        last = b%interior
        first(1:axis - 1) = 1 - ghosts
        last(1:axis - 1) = b%interior(1:axis - 1) + ghosts
        call shift_slab(n - ghosts + 1, b%upper(axis), 1 - ghosts, b%lower(axis))
        call shift_slab(1, b%lower(axis), n + 1, b%upper(axis))
    contains
        ! Sends the layers from index `from` on to `target`, and fills those from `into` on with
        ! what `source` sends; beyond a wall there is none and they stay as they are.
        subroutine shift_slab(from, target, into, source)
            integer, intent(in) :: from, target, into, source
            real(real64), allocatable, dimension(:, :, :) :: outgoing, incoming
            integer :: low(3), high(3), ierr
            low = first
            high = last
            low(axis) = from
            high(axis) = from + ghosts - 1
            allocate (outgoing, source=field(low(1):high(1), low(2):high(2), low(3):high(3)))
            allocate (incoming, mold=outgoing)
            call MPI_Sendrecv(outgoing, size(outgoing), MPI_DOUBLE_PRECISION, target, axis, &
                              incoming, size(incoming), MPI_DOUBLE_PRECISION, source, axis, &
                              b%cart, MPI_STATUS_IGNORE, ierr)
            if (source == MPI_PROC_NULL) return
            low(axis) = into
            high(axis) = into + ghosts - 1
            field(low(1):high(1), low(2):high(2), low(3):high(3)) = incoming
        end subroutine shift_slab
    end subroutine exchange_axis

    ! Ghosts behind a wall mirror the interior, so that the mean across the wall is its value.
    subroutine fill_walls(b, low, high, field)
        type(block_t), intent(in) :: b
        real(real64), intent(in) :: low, high
        real(real64), intent(inout) :: field(1 - ghosts:, 1 - ghosts:, 1 - ghosts:)
        integer :: layer, n
        n = b%interior(3)
        do layer = 1, ghosts
            if (b%lower(3) == MPI_PROC_NULL) then
                field(:, :, 1 - layer) = 2.0_real64*low - field(:, :, layer)
            end if
            if (b%upper(3) == MPI_PROC_NULL) then
                field(:, :, n + layer) = 2.0_real64*high - field(:, :, n + 1 - layer)
            end if
        end do
    end subroutine fill_walls

    subroutine fill_ghosts(b, time, state)
        type(block_t), intent(in) :: b
        real(real64), intent(in) :: time
        type(state_t), intent(inout) :: state
        integer :: axis
        do axis = 1, 3
            call exchange_axis(b, axis, state%u)
            call exchange_axis(b, axis, state%c)
        end do
        call fill_walls(b, 1.0_real64 + 0.25_real64*sin(forcing_frequency*time), 0.0_real64, state%u)
        call fill_walls(b, 0.0_real64, 1.0_real64, state%c)
    end subroutine fill_ghosts

    ! Fourth-order differences of five values in a row, h apart.
    pure real(real64) function second_derivative(h, v) result(value)
        real(real64), intent(in) :: h, v(-2:2)
        value = ((16.0_real64*(v(-1) + v(1)) - (v(-2) + v(2))) - 30.0_real64*v(0))/(12.0_real64*(h*h))
    end function second_derivative

    pure real(real64) function first_derivative(h, v) result(value)
        real(real64), intent(in) :: h, v(-2:2)
        value = (8.0_real64*(v(1) - v(-1)) - (v(2) - v(-2)))/(12.0_real64*h)
    end function first_derivative

    ! Diffusion minus advection at (i, j, k); the order of the sums is that of heat3d.c.
    pure real(real64) function transport(b, kappa, v, i, j, k) result(rate)
        type(block_t), intent(in) :: b
        real(real64), intent(in) :: kappa, v(1 - ghosts:, 1 - ghosts:, 1 - ghosts:)
        integer, intent(in) :: i, j, k
        real(real64) :: row(5, 3), curvature, drift
        integer :: axis
        row(:, 1) = v(i - 2:i + 2, j, k)
        row(:, 2) = v(i, j - 2:j + 2, k)
        row(:, 3) = v(i, j, k - 2:k + 2)
        curvature = 0
        drift = 0
        do axis = 1, 3
            curvature = curvature + second_derivative(b%spacing(axis), row(:, axis))
            drift = drift + velocity(axis)*first_derivative(b%spacing(axis), row(:, axis))
        end do
        rate = kappa*curvature - drift
    end function transport

    subroutine accumulate_rates(b, time, keep, state)
        type(block_t), intent(in) :: b
        real(real64), intent(in) :: time, keep
        type(state_t), intent(inout) :: state
        real(real64) :: strength, sheet, heat, mass
        integer :: i, j, k
        strength = 1.0_real64 + sin(forcing_frequency*time)
        do k = 1, b%interior(3)
            do j = 1, b%interior(2)
                do i = 1, b%interior(1)
                    sheet = strength*(b%profile_x(i)*b%profile_y(j))
                    heat = transport(b, diffusivity(1), state%u, i, j, k) + sheet*b%profile_z(k)
                    mass = transport(b, diffusivity(2), state%c, i, j, k) &
                           - reaction_rate*(state%u(i, j, k)*state%c(i, j, k))
                    state%du(i, j, k) = keep*state%du(i, j, k) + b%dt*heat
                    state%dc(i, j, k) = keep*state%dc(i, j, k) + b%dt*mass
                end do
            end do
        end do
    end subroutine accumulate_rates

    subroutine add_registers(b, share, state)
        type(block_t), intent(in) :: b
        real(real64), intent(in) :: share
        type(state_t), intent(inout) :: state
        associate (nx => b%interior(1), ny => b%interior(2), nz => b%interior(3))
            state%u(1:nx, 1:ny, 1:nz) = state%u(1:nx, 1:ny, 1:nz) + share*state%du(1:nx, 1:ny, 1:nz)
            state%c(1:nx, 1:ny, 1:nz) = state%c(1:nx, 1:ny, 1:nz) + share*state%dc(1:nx, 1:ny, 1:nz)
        end associate
    end subroutine add_registers

    subroutine take_step(b, state)
        type(block_t), intent(in) :: b
        type(state_t), intent(inout) :: state
        real(real64) :: time
        integer :: stage
        state%du = 0
        state%dc = 0
        do stage = 1, stages
            time = state%time + stage_time(stage)*b%dt
            call fill_ghosts(b, time, state)
            call accumulate_rates(b, time, decay(stage), state)
            call add_registers(b, weight(stage), state)
        end do
        state%step = state%step + 1
        state%time = state%time + b%dt
    end subroutine take_step

    pure integer(int64) function hash_word(start, word) result(hash)
        integer(int64), intent(in) :: start, word
        integer :: byte
        hash = start
        do byte = 0, 7
            hash = ieor(hash, ibits(word, 8*byte, 8))*fnv_prime
        end do
    end function hash_word

    ! FNV-1a over (place in the global grid, bits) of every interior value, joined by exclusive or.
    ! The place counts in C order in both languages, so the digest is the same number.
    pure integer(int64) function hash_field(b, number, field) result(joined)
        type(block_t), intent(in) :: b
        integer, intent(in) :: number
        real(real64), intent(in) :: field(1 - ghosts:, 1 - ghosts:, 1 - ghosts:)
        integer(int64) :: place
        integer :: i, j, k
        joined = 0
        do k = 1, b%interior(3)
            do j = 1, b%interior(2)
                do i = 1, b%interior(1)
                    place = int(b%offset(1) + i - 1, int64)
                    place = place*b%global(2) + (b%offset(2) + j - 1)
                    place = place*b%global(3) + (b%offset(3) + k - 1)
                    joined = ieor(joined, hash_word(hash_word(fnv_basis, place*2 + number), &
                                                    transfer(field(i, j, k), place)))
                end do
            end do
        end do
    end function hash_field

    real(real64) function sum_of_squares(b, field) result(total)
        type(block_t), intent(in) :: b
        real(real64), intent(in) :: field(1 - ghosts:, 1 - ghosts:, 1 - ghosts:)
        total = sum(field(1:b%interior(1), 1:b%interior(2), 1:b%interior(3))**2)
    end function sum_of_squares

    ! Hexadecimal digits and exponents as C prints them.
    pure function lower_case(text) result(lowered)
        character(*), intent(in) :: text
        character(len(text)) :: lowered
        integer :: i
        lowered = text
        do i = 1, len(text)
            if (text(i:i) >= 'A' .and. text(i:i) <= 'Z') lowered(i:i) = achar(iachar(text(i:i)) + 32)
        end do
    end function lower_case

    subroutine print_digest(b, state)
        type(block_t), intent(in) :: b
        type(state_t), intent(in) :: state
        integer(int64) :: mine, digest
        real(real64) :: part, parts(b%ranks), values
        character(96) :: line
        integer :: ierr
        mine = ieor(hash_field(b, 0, state%u), hash_field(b, 1, state%c))
        call MPI_Reduce(mine, digest, 1, MPI_INTEGER8, MPI_BXOR, 0, MPI_COMM_WORLD, ierr)
        ! Gathered and added in rank order: MPI may reduce floating-point sums in any order.
        part = sum_of_squares(b, state%u) + sum_of_squares(b, state%c)
        call MPI_Gather(part, 1, MPI_DOUBLE_PRECISION, parts, 1, MPI_DOUBLE_PRECISION, 0, &
                        MPI_COMM_WORLD, ierr)
        if (b%rank == 0) then
            values = 2.0_real64*product(real(b%global, real64))
            write (line, '(a,z16.16,a,i0,a,es22.15)') 'digest ', digest, ' steps ', state%step, &
                ' norm', sqrt(sum(parts)/values)
            write (*, '(a)') lower_case(trim(line))
        end if
    end subroutine print_digest

end module heat3d_physics

! Checkpoint files and the calls of SCR.
module heat3d_checkpoint
    use, intrinsic :: iso_fortran_env, only: int32, int64, real64, error_unit
    use, intrinsic :: iso_c_binding, only: c_int
    use, intrinsic :: ieee_arithmetic, only: ieee_is_finite
    use mpi
    use heat3d_block
    use heat3d_physics
    implicit none
    private
    include 'scrf.h'
    public :: save_checkpoint, restart_or_begin, die_now

    character(8), parameter :: magic = 'HEAT3D_F'
    integer(int32), parameter :: format_version = 1
    integer, parameter :: header_bytes = 72, max_restart_tries = 64

    ! The file's first 72 bytes are its components in this order; u, c, du, dc follow.
    type :: header_t
        character(8) :: magic
        integer(int32) :: place(12) ! version, interior(3), ghosts, offset(3), global(3), ranks
        integer(int64) :: step
        real(real64) :: time
    end type header_t

    interface
        integer(c_int) function raise_signal(number) bind(C, name='raise')
            import :: c_int
            integer(c_int), value :: number
        end function raise_signal
    end interface

contains

    subroutine die_now()
        integer(c_int), parameter :: sigkill = 9 ! the same number on every POSIX system
        integer(c_int) :: status
        status = raise_signal(sigkill)
        if (status /= 0) call fail('raise(SIGKILL) failed')
    end subroutine die_now

    function describe(b, state) result(header)
        type(block_t), intent(in) :: b
        type(state_t), intent(in) :: state
        type(header_t) :: header
        header%magic = magic
        header%place = [format_version, b%interior, int(ghosts, int32), b%offset, b%global, &
                        int(b%ranks, int32)]
        header%step = state%step
        header%time = state%time
    end function describe

    logical function write_file(path, b, state, die_halfway) result(good)
        character(*), intent(in) :: path
        type(block_t), intent(in) :: b
        type(state_t), intent(in) :: state
        logical, intent(in) :: die_halfway
        type(header_t) :: header
        character(256) :: reason
        integer :: unit, status, close_status
        header = describe(b, state)
        reason = ''
        open (newunit=unit, file=path, access='stream', form='unformatted', action='write', &
              status='replace', iostat=status, iomsg=reason)
        if (status == 0) then
            write (unit, iostat=status, iomsg=reason) header%magic, header%place, header%step, &
                header%time, state%u, state%c
            if (die_halfway) then
                flush (unit)
                call die_now()
            end if
            if (status == 0) write (unit, iostat=status, iomsg=reason) state%du, state%dc
            close (unit, iostat=close_status)
            if (status == 0) status = close_status
        end if
        good = status == 0
        if (.not. good) write (error_unit, '(a,i0,5a)') 'heat3d: rank ', b%rank, ': ', path, &
            ': cannot write: ', trim(reason)
    end function write_file

    subroutine refuse(path, b, reason)
        character(*), intent(in) :: path, reason
        type(block_t), intent(in) :: b
        write (error_unit, '(a,i0,6a)') 'heat3d: rank ', b%rank, ': ', path, ': ', reason, &
            '; this checkpoint is refused'
    end subroutine refuse

    ! The header must be the one this rank would write, but for step and time.
    logical function header_fits(path, b, found) result(fits)
        character(*), intent(in) :: path
        type(block_t), intent(in) :: b
        type(header_t), intent(in) :: found
        type(header_t) :: expected
        type(state_t) :: nothing
        character(512) :: reason
        expected = describe(b, nothing)
        fits = .false.
        if (found%magic /= expected%magic) then
            call refuse(path, b, 'offset 0: magic is '''//found%magic//''', expected '''//expected%magic//'''')
        else if (any(found%place /= expected%place)) then
            write (reason, '(2(a,12(1x,i0)))') &
                'header: version, block, ghosts, offset, global grid, ranks are', found%place, &
                ', expected', expected%place
            call refuse(path, b, trim(reason))
        else if (found%step < 0 .or. .not. ieee_is_finite(found%time)) then
            call refuse(path, b, 'header: step or time makes no sense')
        else
            fits = .true.
        end if
    end function header_fits

    ! Length, header, arrays; the first failure ends it with a reason.
    logical function read_open_file(path, unit, b, state) result(good)
        character(*), intent(in) :: path
        integer, intent(in) :: unit
        type(block_t), intent(in) :: b
        type(state_t), intent(inout) :: state
        type(header_t) :: header
        character(256) :: reason
        integer(int64) :: found, expected
        integer :: status
        good = .false.
        expected = header_bytes + 4_int64*8*product(int(b%allocated, int64))
        inquire (unit=unit, size=found)
        if (found /= expected) then
            write (reason, '(2(i0,a))') found, ' bytes, expected ', expected, ''
            call refuse(path, b, trim(reason))
            return
        end if
        read (unit, iostat=status, iomsg=reason) header%magic, header%place, header%step, header%time
        if (status /= 0) then
            call refuse(path, b, 'header: '//trim(reason))
            return
        end if
        if (.not. header_fits(path, b, header)) return
        state%step = header%step
        state%time = header%time
        read (unit, iostat=status, iomsg=reason) state%u, state%c, state%du, state%dc
        if (status /= 0) then
            call refuse(path, b, 'arrays: '//trim(reason))
            return
        end if
        good = .true.
    end function read_open_file

    logical function read_file(path, b, state) result(good)
        character(*), intent(in) :: path
        type(block_t), intent(in) :: b
        type(state_t), intent(inout) :: state
        character(256) :: reason
        integer :: unit, status
        open (newunit=unit, file=path, access='stream', form='unformatted', action='read', &
              status='old', iostat=status, iomsg=reason)
        if (status /= 0) then
            call refuse(path, b, 'cannot open: '//trim(reason))
            good = .false.
            return
        end if
        good = read_open_file(path, unit, b, state)
        close (unit)
    end function read_file

    subroutine save_checkpoint(b, state, options)
        type(block_t), intent(in) :: b
        type(state_t), intent(in) :: state
        type(options_t), intent(in) :: options
        character(SCR_MAX_FILENAME) :: dataset, name, path
        integer :: status, valid
        logical :: die
        write (dataset, '(a,i0)') 'ckpt.', state%step
        write (name, '(2a,i0)') trim(dataset), '/heat.', b%rank
        if (options%legacy) then
            call SCR_Start_checkpoint(status)
        else
            call SCR_Start_output(dataset, SCR_FLAG_CHECKPOINT, status)
        end if
        if (status /= SCR_SUCCESS) call fail('SCR would not start checkpoint '//trim(dataset))
        die = options%die_in_checkpoint == state%step .and. options%rank_die == b%rank
        valid = 0
        call SCR_Route_file(name, path, status)
        if (status == SCR_SUCCESS) then
            if (write_file(trim(path), b, state, die)) valid = 1
        end if
        if (options%legacy) then
            call SCR_Complete_checkpoint(valid, status)
        else
            call SCR_Complete_output(valid, status)
        end if
        if (status /= SCR_SUCCESS .and. b%rank == 0) then
            write (error_unit, '(3a)') 'heat3d: checkpoint ', trim(dataset), ' is not complete; going on'
        end if
    end subroutine save_checkpoint

    ! Files of different steps must not be mixed, so every rank's step and time must agree.
    logical function ranks_agree(state, valid) result(agree)
        type(state_t), intent(in) :: state
        logical, intent(in) :: valid
        real(real64) :: mine(5), least(5)
        integer :: ierr
        mine = [merge(1.0_real64, 0.0_real64, valid), real(state%step, real64), &
                -real(state%step, real64), state%time, -state%time]
        call MPI_Allreduce(mine, least, 5, MPI_DOUBLE_PRECISION, MPI_MIN, MPI_COMM_WORLD, ierr)
        agree = least(1) > 0 .and. .not. (least(2) < -least(3)) .and. .not. (least(4) < -least(5))
    end function ranks_agree

    logical function try_restart(b, options, state) result(restarted)
        type(block_t), intent(in) :: b
        type(options_t), intent(in) :: options
        type(state_t), intent(inout) :: state
        character(SCR_MAX_FILENAME) :: dataset, name, path
        integer :: status
        logical :: good
        call SCR_Start_restart(dataset, status)
        if (status /= SCR_SUCCESS) call fail('SCR announced a restart and would not start it')
        if (options%legacy) then
            ! The old calls name datasets themselves; SCR then finds a file by its last component.
            write (name, '(a,i0)') 'heat.', b%rank
        else
            write (name, '(2a,i0)') trim(dataset), '/heat.', b%rank
        end if
        call SCR_Route_file(name, path, status)
        if (status == SCR_SUCCESS) then
            good = read_file(trim(path), b, state)
        else
            call refuse(trim(name), b, 'SCR has no such file')
            good = .false.
        end if
        if (.not. ranks_agree(state, good)) good = .false.
        ! SCR_Complete_restart fails on all ranks when one of them could not read its file.
        call SCR_Complete_restart(merge(1, 0, good), status)
        restarted = good .and. status == SCR_SUCCESS
        if (restarted .and. b%rank == 0) then
            write (*, '(3a,i0)') 'restarted from ', trim(dataset), ' step ', state%step
        end if
    end function try_restart

    ! Tries SCR's checkpoints from the newest to the oldest, else starts at time zero.
    subroutine restart_or_begin(b, options, state)
        type(block_t), intent(in) :: b
        type(options_t), intent(in) :: options
        type(state_t), intent(inout) :: state
        character(SCR_MAX_FILENAME) :: dataset
        integer :: have, status, tries
        do tries = 1, max_restart_tries
            call SCR_Have_restart(have, dataset, status)
            if (status /= SCR_SUCCESS) call fail('SCR_Have_restart failed')
            if (have == 0) exit
            if (try_restart(b, options, state)) return
        end do
        call set_initial_state(b, state)
        if (b%rank == 0) write (*, '(a)') 'fresh start'
    end subroutine restart_or_begin

end module heat3d_checkpoint

module heat3d_options
    use, intrinsic :: iso_fortran_env, only: int64, error_unit
    use heat3d_block, only: options_t, default_edge
    implicit none
    private
    public :: parse_options, print_help

contains

    subroutine print_help()
        type(options_t) :: defaults
        write (*, '(a)') 'usage: heat3d [options]   (under mpiexec)'
        write (*, '(a,i0,a)') '  --n NX NY NZ              interior cells of the global grid (default: ', &
            default_edge, '^3 per rank)'
        write (*, '(a,i0,a)') '  --steps N                 time steps in all (default ', defaults%steps, ')'
        write (*, '(a,i0,a)') '  --every K                 checkpoint every K steps, 0 = never (default ', &
            defaults%every, ')'
        write (*, '(a)') '  --die-at STEP             raise SIGKILL after STEP, before its checkpoint', &
            '  --die-in-checkpoint STEP  raise SIGKILL halfway through writing ckpt.STEP', &
            '  --rank-die R              the rank that dies (default 0)', &
            '  --sleep-ms M              pause M milliseconds after each step', &
            '  --legacy                  use SCR_Start_checkpoint instead of SCR_Start_output', &
            '  --help                    this text', &
            'Checkpoints are ckpt.STEP/heat.RANK under the working directory, which must be', &
            'SCR_PREFIX or lie below it.'
    end subroutine print_help

    ! Reads argument `next`, of option `name`, as an integer in [low, high] and steps `next`.
    logical function take_number(name, next, low, high, loud, value) result(good)
        character(*), intent(in) :: name
        integer, intent(inout) :: next
        integer(int64), intent(in) :: low, high
        logical, intent(in) :: loud
        integer(int64), intent(out) :: value
        character(64) :: text
        integer :: status
        value = 0
        text = 'nothing'
        good = next <= command_argument_count()
        if (good) then
            call get_command_argument(next, text)
            ! A list-directed read would also take '5,6' and '5/': digits only.
            good = len_trim(text) > 0 .and. verify(trim(text), '0123456789') == 0
        end if
        if (good) then
            read (text, *, iostat=status) value
            good = status == 0 .and. value >= low .and. value <= high
        end if
        if (good) then
            next = next + 1
        else if (loud) then
            write (error_unit, '(3a,i0,a,i0,3a)') 'heat3d: ', trim(name), ': expected an integer from ', &
                low, ' to ', high, ', found ''', trim(text), ''''
        end if
    end function take_number

    logical function take_grid(name, next, loud, options) result(good)
        character(*), intent(in) :: name
        integer, intent(inout) :: next
        logical, intent(in) :: loud
        type(options_t), intent(inout) :: options
        integer(int64), parameter :: most_cells = 536870911
        integer(int64) :: edge
        integer :: axis
        do axis = 1, 3
            good = take_number(name, next, 1_int64, most_cells, loud, edge)
            if (.not. good) return
            options%global(axis) = int(edge)
        end do
    end function take_grid

    logical function parse_options(loud, options) result(good)
        logical, intent(in) :: loud
        type(options_t), intent(inout) :: options
        integer(int64), parameter :: most = huge(1_int64), none = 0, one = 1
        character(64) :: name
        integer :: next
        good = .true.
        next = 1
        do while (good .and. next <= command_argument_count())
            call get_command_argument(next, name)
            next = next + 1
            select case (name)
            case ('--n')
                good = take_grid(name, next, loud, options)
            case ('--steps')
                good = take_number(name, next, none, most, loud, options%steps)
            case ('--every')
                good = take_number(name, next, none, most, loud, options%every)
            case ('--die-at')
                good = take_number(name, next, one, most, loud, options%die_at)
            case ('--die-in-checkpoint')
                good = take_number(name, next, one, most, loud, options%die_in_checkpoint)
            case ('--rank-die')
                good = take_number(name, next, none, int(huge(1), int64), loud, options%rank_die)
            case ('--sleep-ms')
                good = take_number(name, next, none, 1000000_int64, loud, options%sleep_ms)
            case ('--legacy')
                options%legacy = .true.
            case ('--help')
                options%help = .true.
            case default
                good = .false.
                if (loud) write (error_unit, '(3a)') 'heat3d: unknown option ''', trim(name), '''; see --help'
            end select
        end do
    end function parse_options

end module heat3d_options

program heat3d
    use, intrinsic :: iso_fortran_env, only: output_unit
    use, intrinsic :: iso_c_binding, only: c_int
    use mpi
    use heat3d_block
    use heat3d_physics
    use heat3d_checkpoint
    use heat3d_options
    implicit none
    interface
        integer(c_int) function pause_microseconds(duration) bind(C, name='usleep')
            import :: c_int
            integer(c_int), value :: duration
        end function pause_microseconds
    end interface
    type(options_t) :: options
    integer :: rank, ierr
    logical :: good

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    good = parse_options(rank == 0, options)
    if (good .and. options%help) then
        if (rank == 0) call print_help()
    else if (good) then
        call simulate(options)
    end if
    call MPI_Finalize(ierr)
    if (.not. good) stop 2

contains

    subroutine simulate(options)
        type(options_t), intent(in) :: options
        type(block_t) :: b
        type(state_t) :: state
        integer :: status
        call create_block(options, b)
        if (options%rank_die >= b%ranks) call fail('--rank-die: there is no such rank')
        call allocate_state(b, state)
        call SCR_Init(status)
        if (status /= 0) then
            call fail('SCR_Init failed; are SCR_PREFIX and its cache directory there, and SCR_ENABLE not 0?')
        end if
        call restart_or_begin(b, options, state)
        flush (output_unit)
        call run(b, options, state)
        call print_digest(b, state)
        call SCR_Finalize(status)
        call free_block(b)
    end subroutine simulate

    subroutine run(b, options, state)
        type(block_t), intent(in) :: b
        type(options_t), intent(in) :: options
        type(state_t), intent(inout) :: state
        integer(c_int) :: status
        do while (state%step < options%steps)
            call take_step(b, state)
            if (options%sleep_ms > 0) status = pause_microseconds(int(1000*options%sleep_ms, c_int))
            if (options%die_at == state%step .and. options%rank_die == b%rank) call die_now()
            if (options%every > 0) then
                if (mod(state%step, options%every) == 0) call save_checkpoint(b, state, options)
            end if
        end do
    end subroutine run

end program heat3d
