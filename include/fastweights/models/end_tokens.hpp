#pragma once

#include <fastweights/core/views.hpp>
#include <filesystem>
#include <vector>

/// \file
/// The tokens that end a text of a published model.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// End tokens of a model's folder: eos_token_id of generation_config.json, a number or a list;
/// without it that of config.json, of its text_config first. A model may have none. Throws
/// std::invalid_argument for a file that cannot be read, or an id that is not below `vocabulary`.
std::vector<int> end_tokens(const std::filesystem::path& folder, Index vocabulary);

}  // namespace fw::models

#ifndef FASTWEIGHTS_COMPILED_TEXT
#include <fastweights/models/implementation/end_tokens.hpp>
#endif
