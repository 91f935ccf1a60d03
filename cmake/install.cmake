include(CMakePackageConfigHelpers)

install(TARGETS decant decant_static EXPORT decant
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS decant_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/decant DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
foreach(section 1 3)
    file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.${section})
    install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/SECURITY.md ${PROJECT_SOURCE_DIR}/LICENSE
    DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
    FILES_MATCHING PATTERN *.md PATTERN *.c PATTERN man EXCLUDE)

install(FILES ${PROJECT_SOURCE_DIR}/completions/decant.bash
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME decant)
install(FILES ${PROJECT_SOURCE_DIR}/completions/_decant DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${PROJECT_SOURCE_DIR}/completions/decant.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

install(FILES ${PROJECT_SOURCE_DIR}/docs/decant-1.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/decant)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/decant)
install(EXPORT decant NAMESPACE decant:: FILE decantConfig.cmake DESTINATION ${package_dir})
write_basic_package_version_file(decantConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/decantConfigVersion.cmake DESTINATION ${package_dir})

# Relative to the file itself, so that an installed tree can be moved.
set(pc_dir ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pc_libdir ${pc_dir} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH pc_includedir ${pc_dir} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
set(pc_libraries ${decant_libraries})
list(TRANSFORM pc_libraries PREPEND -l)
list(JOIN pc_libraries " " pc_libraries)
configure_file(${PROJECT_SOURCE_DIR}/cmake/decant.pc.in decant.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/decant.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
