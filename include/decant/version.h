/** The version of decant, in this one place. */
#ifndef DECANT_VERSION_H
#define DECANT_VERSION_H

#define DECANT_VERSION_MAJOR 0
#define DECANT_VERSION_MINOR 1
#define DECANT_VERSION_PATCH 0

#endif
