# libdecant: one list of sources, one object library, and from it the shared library, the static one and the unit tests.

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/sources.list)
file(STRINGS ${PROJECT_SOURCE_DIR}/src/sources.list sources)
list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/)

# The allocator is a seam: the tests link their own in its place.
set(allocator ${PROJECT_SOURCE_DIR}/src/base/alloc.c)
list(REMOVE_ITEM sources ${allocator})

find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
mark_as_advanced(XXHASH_INCLUDE_DIR)

option(DECANT_LIBCRYPTO "SHA-256 by libcrypto: decant digest needs it" ON)
if(DECANT_LIBCRYPTO)
    find_package(OpenSSL REQUIRED COMPONENTS Crypto)
endif()

option(DECANT_PCRE2 "regular expressions by PCRE2: --rename and re: patterns need it" ON)
if(DECANT_PCRE2)
    find_path(PCRE2_INCLUDE_DIR pcre2.h REQUIRED)
    mark_as_advanced(PCRE2_INCLUDE_DIR)
endif()

add_library(decant_objects OBJECT ${sources})
add_library(decant_allocator OBJECT ${allocator})
foreach(target decant_objects decant_allocator)
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_include_directories(${target} SYSTEM PRIVATE ${XXHASH_INCLUDE_DIR})
endforeach()
if(DECANT_LIBCRYPTO)
    target_compile_definitions(decant_objects PRIVATE DCN_HAS_LIBCRYPTO)
    target_include_directories(decant_objects SYSTEM PRIVATE ${OPENSSL_INCLUDE_DIR})
    set(decant_libraries crypto) # by its bare name: an installed package has no path of this machine's
endif()
if(DECANT_PCRE2)
    target_compile_definitions(decant_objects PRIVATE DCN_HAS_PCRE2)
    target_include_directories(decant_objects SYSTEM PRIVATE ${PCRE2_INCLUDE_DIR})
    list(APPEND decant_libraries pcre2-8)
endif()
set(objects $<TARGET_OBJECTS:decant_objects> $<TARGET_OBJECTS:decant_allocator>)

# Before 1.0 any minor version may break the ABI.
set(soversion ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(soversion 0.${PROJECT_VERSION_MINOR})
endif()
add_library(decant SHARED ${objects})
target_link_libraries(decant PRIVATE ${decant_libraries})
set_target_properties(decant PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${soversion})

# In an archive, hidden symbols would still meet those of the program that links it: they are made local first.
add_custom_command(OUTPUT decant.o
    COMMAND ${CMAKE_LINKER} -r -o decant.o ${objects}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden decant.o
    DEPENDS ${objects}
    COMMAND_EXPAND_LISTS
    VERBATIM)
add_library(decant_static STATIC decant.o)
target_link_libraries(decant_static INTERFACE ${decant_libraries})
set_target_properties(decant_static PROPERTIES OUTPUT_NAME decant LINKER_LANGUAGE C)

foreach(target decant decant_static)
    target_include_directories(${target} INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    add_library(decant::${target} ALIAS ${target})
endforeach()
