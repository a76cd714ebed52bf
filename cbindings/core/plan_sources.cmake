# Sources of the plan side of the core, relative to cbindings/; included by cbindings/CMakeLists.txt.
set(SCR_CRIT_PLAN_SOURCES
  core/glob.c
  core/plan.c
  core/plan_array.c
  core/plan_boxes.c
  core/plan_check.c
  core/plan_resolve.c
  core/plan_rows.c
  core/plan_utf8.c)
