# The decant program. Linked statically against the library, so that it runs from wherever it is copied to.

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/*.c)
if(sources)
    add_executable(decant_program ${sources})
    target_link_libraries(decant_program PRIVATE decant_static)
    target_compile_definitions(decant_program PRIVATE _GNU_SOURCE)
    set_target_properties(decant_program PROPERTIES OUTPUT_NAME decant)
    if(DECANT_STATIC)
        set(CMAKE_C_LINK_OPTIONS_PIE -static-pie) # a -pie beside it would win
    endif()
endif()
