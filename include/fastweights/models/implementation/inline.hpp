#pragma once

/// \file
/// Functions of a text, which fastweights::compiled_models holds once if PCRE2 and utf8proc are
/// there. Elsewhere they are inline.

#ifdef FASTWEIGHTS_COMPILED_TEXT
#define FASTWEIGHTS_TEXT_INLINE
#else
#define FASTWEIGHTS_TEXT_INLINE inline
#endif
