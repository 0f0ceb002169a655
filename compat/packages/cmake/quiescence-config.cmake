# Read-copy-update for user space, with liburcu's interface.
#   find_package(quiescence 0.2 REQUIRED COMPONENTS memb)
#   target_link_libraries(program PRIVATE quiescence::memb)
# Components, and targets: @COMPONENTS@ cxx; each but cxx as NAME-static too.
set(_quiescence_components @COMPONENTS@)
string(REPLACE ";" "|" _quiescence_names "${_quiescence_components};cxx")
foreach(_quiescence_component IN LISTS quiescence_FIND_COMPONENTS)
  if(_quiescence_component MATCHES "^(${_quiescence_names})$")
    set(quiescence_${_quiescence_component}_FOUND TRUE)
  elseif(quiescence_FIND_REQUIRED_${_quiescence_component})
    set(quiescence_FOUND FALSE)
    set(quiescence_NOT_FOUND_MESSAGE
      "there is no component ${_quiescence_component}; there are: @COMPONENTS@ cxx")
    return()
  endif()
endforeach()
if(TARGET quiescence::core)
  return()
endif()

include(CMakeFindDependencyMacro)
find_dependency(Threads)
get_filename_component(_quiescence_libraries "@LIBDIR@" ABSOLUTE)
get_filename_component(_quiescence_headers "@INCLUDEDIR@" ABSOLUTE)

# Each is a library and an archive. What it needs is linked after it in a static link; a shared one
# finds the core by itself, and the linker has to know where that is.
foreach(_quiescence_name core common ${_quiescence_components})
  set(_quiescence_file liburcu-${_quiescence_name})
  set(_quiescence_soversion 8)
  set(_quiescence_needs common)
  if(_quiescence_name STREQUAL common)
    set(_quiescence_needs core)
  elseif(_quiescence_name STREQUAL core)
    set(_quiescence_file libquiescence)
    set(_quiescence_soversion 0)
    set(_quiescence_needs)
  endif()
  set(_quiescence_soname ${_quiescence_file}.so.${_quiescence_soversion})

  add_library(quiescence::${_quiescence_name} SHARED IMPORTED)
  add_library(quiescence::${_quiescence_name}-static STATIC IMPORTED)
  set_target_properties(quiescence::${_quiescence_name} PROPERTIES
    IMPORTED_LOCATION "${_quiescence_libraries}/${_quiescence_soname}"
    IMPORTED_SONAME "${_quiescence_soname}"
    INTERFACE_INCLUDE_DIRECTORIES "${_quiescence_headers}")
  set_target_properties(quiescence::${_quiescence_name}-static PROPERTIES
    IMPORTED_LOCATION "${_quiescence_libraries}/${_quiescence_file}.a"
    IMPORTED_LINK_INTERFACE_LANGUAGES C
    INTERFACE_INCLUDE_DIRECTORIES "${_quiescence_headers}"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
  if(_quiescence_needs)
    set_target_properties(quiescence::${_quiescence_name} PROPERTIES
      IMPORTED_LINK_DEPENDENT_LIBRARIES quiescence::core)
    set_target_properties(quiescence::${_quiescence_name}-static PROPERTIES
      INTERFACE_LINK_LIBRARIES quiescence::${_quiescence_needs}-static)
  endif()
  if(_quiescence_needs STREQUAL common)
    set_target_properties(quiescence::${_quiescence_name} PROPERTIES
      INTERFACE_LINK_LIBRARIES "quiescence::common;Threads::Threads")
  endif()
endforeach()

add_library(quiescence::cxx INTERFACE IMPORTED)
set_target_properties(quiescence::cxx PROPERTIES
  INTERFACE_COMPILE_FEATURES cxx_std_20
  INTERFACE_LINK_LIBRARIES "quiescence::memb;quiescence::core")
