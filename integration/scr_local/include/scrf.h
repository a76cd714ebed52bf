! scrf.h: constants of SCR's Fortran interface; fixed and free source form.
! The subroutines are those of scr.h in lower case with the return value as
! a last argument: call scr_route_file(name, file, ierror).

! returned when a call worked
      INTEGER SCR_SUCCESS
      PARAMETER (SCR_SUCCESS = 0)

! length of a character variable that receives a name
      INTEGER SCR_MAX_FILENAME
      PARAMETER (SCR_MAX_FILENAME = 1024)

! what a dataset is for: a sum of these for scr_start_output
      INTEGER SCR_FLAG_NONE
      PARAMETER (SCR_FLAG_NONE = 0)
      INTEGER SCR_FLAG_CHECKPOINT
      PARAMETER (SCR_FLAG_CHECKPOINT = 1)
      INTEGER SCR_FLAG_OUTPUT
      PARAMETER (SCR_FLAG_OUTPUT = 2)
