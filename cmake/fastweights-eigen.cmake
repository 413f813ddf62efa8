# Finds Eigen 3.4 or newer, Eigen 5 included, for this project and for its installed package. It
# compares versions itself, because Eigen 3.4's version file refuses a request for 5, and Eigen 5's
# refuses a request for 3.4. Sets fastweights_eigen_error, which is empty without an error.
macro(fastweights_find_eigen)
  set(fastweights_eigen_error "")
  if(NOT TARGET Eigen3::Eigen)
    find_package(Eigen3 CONFIG QUIET)
    if(NOT Eigen3_FOUND)
      set(fastweights_eigen_error "fastweights needs Eigen 3.4 or newer and found none: install it \
(Debian: libeigen3-dev) or name its prefix in CMAKE_PREFIX_PATH.")
    endif()
  endif()
  if(DEFINED Eigen3_VERSION AND Eigen3_VERSION VERSION_LESS 3.4)
    set(fastweights_eigen_error
        "fastweights needs Eigen 3.4 or newer and found ${Eigen3_VERSION} in ${Eigen3_DIR}.")
  endif()
endmacro()
