/** Everything that decant offers. */
#ifndef DECANT_H
#define DECANT_H

#include <decant/bytes.h>
#include <decant/check.h>
#include <decant/error.h>
#include <decant/extract.h>
#include <decant/formats.h>
#include <decant/model.h>
#include <decant/recover.h>
#include <decant/save.h>
#include <decant/transform.h>
#include <decant/version.h>

#endif
