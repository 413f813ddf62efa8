#pragma once

#include <string>
#include <string_view>

namespace fw::inline FASTWEIGHTS_ABI::models::detail {

// A name behind \p that Oniguruma knows and PCRE2 does not: entries of a set for PCRE2.
struct CategoryName {
  std::string_view name;       // without case, spaces, - and _
  const char* entries;         // empty: those of \w, which depend on where it stands
  bool is_complement = false;  // all characters but these
};

// The long names of general categories, and POSIX's names. What they match is recorded in
// tests/data/tokenizer_cases.json.
inline constexpr CategoryName category_names[] = {
    {"letter", "\\p{L}"},
    {"uppercaseletter", "\\p{Lu}"},
    {"lowercaseletter", "\\p{Ll}"},
    {"titlecaseletter", "\\p{Lt}"},
    {"casedletter", "\\p{Lu}\\p{Ll}\\p{Lt}"},
    {"lc", "\\p{Lu}\\p{Ll}\\p{Lt}"},
    {"modifierletter", "\\p{Lm}"},
    {"otherletter", "\\p{Lo}"},
    {"mark", "\\p{M}"},
    {"combiningmark", "\\p{M}"},
    {"nonspacingmark", "\\p{Mn}"},
    {"spacingmark", "\\p{Mc}"},
    {"enclosingmark", "\\p{Me}"},
    {"number", "\\p{N}"},
    {"decimalnumber", "\\p{Nd}"},
    {"digit", "\\p{Nd}"},
    {"letternumber", "\\p{Nl}"},
    {"othernumber", "\\p{No}"},
    {"punctuation", "\\p{P}"},
    {"punct", "\\p{P}"},
    {"connectorpunctuation", "\\p{Pc}"},
    {"dashpunctuation", "\\p{Pd}"},
    {"openpunctuation", "\\p{Ps}"},
    {"closepunctuation", "\\p{Pe}"},
    {"initialpunctuation", "\\p{Pi}"},
    {"finalpunctuation", "\\p{Pf}"},
    {"otherpunctuation", "\\p{Po}"},
    {"symbol", "\\p{S}"},
    {"mathsymbol", "\\p{Sm}"},
    {"currencysymbol", "\\p{Sc}"},
    {"modifiersymbol", "\\p{Sk}"},
    {"othersymbol", "\\p{So}"},
    {"separator", "\\p{Z}"},
    {"spaceseparator", "\\p{Zs}"},
    {"lineseparator", "\\p{Zl}"},
    {"paragraphseparator", "\\p{Zp}"},
    {"other", "\\p{C}"},
    {"control", "\\p{Cc}"},
    {"cntrl", "\\p{Cc}"},
    {"format", "\\p{Cf}"},
    {"unassigned", "\\p{Cn}"},
    {"privateuse", "\\p{Co}"},
    {"surrogate", "\\p{Cs}"},
    {"assigned", "\\p{Cn}", true},
    {"alnum", "\\p{Alphabetic}\\p{Nd}"},
    {"word", ""},
    {"xdigit", "0-9A-Fa-f"},
    {"blank", "\\p{Zs}\\x{9}"},
    {"graph", "\\p{Z}\\p{Cc}\\p{Cn}\\p{Cs}", true},
    {"print", "\\p{Zl}\\p{Zp}\\p{Cc}\\p{Cn}\\p{Cs}", true}};

// The entry of a name in any spelling; null if there is none.
inline const CategoryName* category_of(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (c != ' ' && c != '-' && c != '_') plain += c >= 'A' && c <= 'Z' ? char(c + 32) : c;
  for (const CategoryName& each : category_names)
    if (each.name == plain) return &each;
  return nullptr;
}

}  // namespace fw::models::detail
