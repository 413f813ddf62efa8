#pragma once

#include <fastweights/models/strict_json.hpp>
#include <fastweights/models/tokenizer/added_tokens.hpp>
#include <fastweights/models/tokenizer/byte_pairs.hpp>
#include <fastweights/models/tokenizer/pre_tokenizer.hpp>
#include <span>

/// \file
/// The work of a Tokenizer. Needs nlohmann-json, PCRE2 (link pcre2-8) and utf8proc.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// A byte-level tokenizer, read from its tokenizer.json: see Tokenizer, whose functions are these.
class ByteLevelTokenizer {
 public:
  /// From a file, of at most 64 MiB.
  static ByteLevelTokenizer read(const std::filesystem::path& file) {
    return parse(text_of_file(file, 64 << 20), file.string());
  }
  /// From the text of a file. `where` is what errors begin with.
  static ByteLevelTokenizer parse(const std::string& text,
                                  const std::string& where = "tokenizer.json") {
    return ByteLevelTokenizer(parse_strictly(text, where), where);
  }

  /// `adds_special`: with the tokens of the post_processor, such as one at the beginning.
  std::vector<int> encode(std::string_view text, bool adds_special = true) const {
    if (text.size() > 1 << 30) fail("", "expected a text of at most 2^30 bytes");
    std::vector<int> ids;
    if (adds_special) ids = first_ids_;
    BytePairs::Scratch scratch;
    PatternSteps steps(text.size());
    const auto add_id = [&](int id) { ids.push_back(id); };
    const auto add_word = [&](std::string_view word) { pairs_.encode(word, ids, scratch); };
    const auto add_words = [&](std::string_view part) {
      words_.for_each_word(part, steps, add_word);
    };
    const auto add_part = [&](std::string_view part) {
      normal_.split(normal_form(part), add_words, add_id);
    };
    exact_.split(valid_utf8(std::string(text)), add_part, add_id);
    if (adds_special) ids.insert(ids.end(), last_ids_.begin(), last_ids_.end());
    return ids;
  }

  /// Ids without a token add nothing. `skips_special`: special tokens add nothing either. Bytes
  /// that are not UTF-8 become U+FFFD.
  std::string decode(std::span<const int> ids, bool skips_special = true) const {
    std::string bytes;
    for (const int id : ids)
      if (!skips_special || !is_special(id)) bytes += bytes_of_id(id);
    return valid_utf8(std::move(bytes));
  }

  /// The id of a token, or nothing. Tokens of the model are in letters for bytes.
  std::optional<int> id_of(std::string_view token) const {
    const auto found = added_ids_.find(std::string(token));
    return found != added_ids_.end() ? found->second : pairs_.id_of(std::string(token));
  }
  /// One more than the largest id.
  std::size_t size() const { return tokens_.size(); }
  /// True if the id is that of a special token.
  bool is_special(int id) const {
    return has(id) && tokens_[static_cast<std::size_t>(id)].is_special;
  }
  /// The bytes of a token, which need not be whole characters; empty if the id has none.
  const std::string& bytes_of_id(int id) const {
    static const std::string none;
    return has(id) ? tokens_[static_cast<std::size_t>(id)].bytes : none;
  }

 private:
  static constexpr std::size_t most_around = 1024;  // tokens that a post_processor adds to a text
  struct Token {
    std::string bytes;
    bool is_used = false, is_special = false;
  };

  ByteLevelTokenizer(const nlohmann::json& json, const std::string& where)
      : where_(where),
        pairs_(entry(json, "model"), where + ": model"),
        words_(entry(json, "pre_tokenizer"), where + ": pre_tokenizer") {
    if (has_entry(json, "version") && json["version"] != "1.0") fail("version", "supported is 1.0");
    tokens_.resize(pairs_.size());
    for (const auto& [token, id] : pairs_.ids())
      tokens_[static_cast<std::size_t>(id)] = {bytes_of(token), true, false};
    if (has_entry(json, "normalizer")) read_normalizer(json["normalizer"], where + ": normalizer");
    if (has_entry(json, "added_tokens")) read_added_tokens(json["added_tokens"]);
    if (has_entry(json, "post_processor"))
      read_post_processor(json["post_processor"], where + ": post_processor");
    const Config decoder(entry(json, "decoder"), where + ": decoder");
    if (!decoder.is_text("type", "ByteLevel")) decoder.fail("type", "supported is ByteLevel");
  }

  static bool has_entry(const nlohmann::json& json, const char* name) {
    return json.is_object() && json.contains(name) && !json[name].is_null();
  }
  const nlohmann::json& entry(const nlohmann::json& json, const char* name) const {
    if (!has_entry(json, name)) fail(name, "is missing");
    return json[name];
  }

  void read_normalizer(const nlohmann::json& json, const std::string& where) {
    const Config config(json, where);
    if (config.is_text("type", "NFC"))
      is_nfc_ = true;
    else if (config.is_text("type", "Sequence"))
      for (const nlohmann::json& each : list(json, "normalizers", config))
        read_normalizer(each, where + ": normalizers");
    else
      config.fail("type", "supported is null, NFC or Sequence");
  }

  void read_added_tokens(const nlohmann::json& json) {
    if (!json.is_array()) fail("added_tokens", "expected a list");
    std::vector<AddedTokens::Token> exact, normal;
    for (std::size_t i = 0; i < json.size(); ++i) {
      const Config config(json[i], where_ + ": added_tokens " + std::to_string(i));
      const bool is_normal = config.flag("normalized", true);
      const std::string content = config.text("content");
      const std::string text = is_normal ? normal_form(content) : content;
      if (text.size() > 1024) config.fail("content", "expected at most 1024 bytes");
      const int id = added_id(content, config);
      tokens_[static_cast<std::size_t>(id)] = {bytes_of(text), true, config.flag("special")};
      if (!text.empty())
        (is_normal ? normal : exact)
            .push_back({text, id, config.flag("single_word"), config.flag("lstrip"),
                        config.flag("rstrip")});
    }
    exact_ = AddedTokens(std::move(exact));
    normal_ = AddedTokens(std::move(normal));
    for (const AddedTokens* each : {&exact_, &normal_})
      if (each->twice() != nullptr)
        fail("added_tokens", each->twice()->text.substr(0, 60) + " is there twice");
  }

  // The id of an added token: the vocabulary's, or a new one.
  int added_id(const std::string& content, const Config& config) {
    const Index id = config.has("id") ? config.count("id") : -1;
    if (id < 0 || id >= BytePairs::most_ids)
      config.fail("id", "expected 0 to " + std::to_string(BytePairs::most_ids - 1));
    const auto i = static_cast<std::size_t>(id);
    const std::optional<int> known = pairs_.id_of(content);
    if (known && *known != id)
      config.fail("id", "the vocabulary has the id " + std::to_string(*known));
    if (!added_ids_.emplace(content, static_cast<int>(id)).second)
      config.fail("content", "is there twice");
    if (i >= tokens_.size()) tokens_.resize(i + 1);
    if (!known && tokens_[i].is_used) config.fail("id", "belongs to another token");
    return static_cast<int>(id);
  }

  void read_post_processor(const nlohmann::json& json, const std::string& where) {
    const Config config(json, where);
    config.expect("type", {"ByteLevel", "Sequence", "TemplateProcessing"});
    if (config.is_text("type", "Sequence"))
      for (const nlohmann::json& each : list(json, "processors", config))
        read_post_processor(each, where + ": processors");
    else if (config.is_text("type", "TemplateProcessing"))
      read_template(json, config, where + ": single");
    else if (!config.has("type"))
      config.fail("type", "is missing");
  }

  // Tokens before and after the text, which is {"Sequence": …} in the list "single". The ids of a
  // special token are read once, although many pieces may name it.
  void read_template(const nlohmann::json& json, const Config& config, const std::string& where) {
    std::vector<int> before, after;
    std::unordered_map<std::string, std::vector<int>> known;
    bool has_text = false;
    const Config specials = config.part("special_tokens");
    for (const nlohmann::json& each : list(json, "single", config)) {
      const Config piece(each, where);
      const bool is_text = piece.has("Sequence");
      if (is_text == piece.has("SpecialToken") || (is_text && has_text) ||
          (is_text && !piece.part("Sequence").is_text("id", "A")))
        config.fail("single", "expected special tokens and one Sequence A");
      has_text = has_text || is_text;
      if (is_text) continue;
      const std::string name = piece.part("SpecialToken").text("id");
      const auto [special, is_new] = known.try_emplace(name);
      if (is_new) special->second = special_ids(specials.part(name));
      std::vector<int>& side = has_text ? after : before;
      side.insert(side.end(), special->second.begin(), special->second.end());
      if (first_ids_.size() + last_ids_.size() + before.size() + after.size() > most_around)
        config.fail("single", "expected at most " + std::to_string(most_around) + " tokens");
    }
    if (!has_text) config.fail("single", "expected special tokens and one Sequence A");
    first_ids_.insert(first_ids_.begin(), before.begin(), before.end());
    last_ids_.insert(last_ids_.end(), after.begin(), after.end());
  }
  std::vector<int> special_ids(const Config& special) const {
    std::vector<int> ids;
    for (const Index id : special.sizes("ids")) {
      if (id < 0 || static_cast<std::size_t>(id) >= tokens_.size())
        special.fail("ids", "expected ids of tokens");
      ids.push_back(static_cast<int>(id));
    }
    if (ids.size() > most_around)
      special.fail("ids", "expected at most " + std::to_string(most_around));
    return ids;
  }

  static const nlohmann::json& list(const nlohmann::json& json, const char* name,
                                    const Config& config) {
    if (!json.contains(name) || !json[name].is_array()) config.fail(name, "expected a list");
    return json[name];
  }

  std::string normal_form(std::string_view text) const {
    return is_nfc_ ? nfc(text) : std::string(text);
  }
  bool has(int id) const { return id >= 0 && static_cast<std::size_t>(id) < tokens_.size(); }
  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    fw::detail::throw_invalid({where_, ": ", name, name.empty() ? "" : ": ", what});
  }

  std::string where_;
  BytePairs pairs_;
  PreTokenizer words_;
  bool is_nfc_ = false;
  AddedTokens exact_, normal_;  // found in a text as it is, or in its normal form
  std::unordered_map<std::string, int> added_ids_;
  std::vector<Token> tokens_;              // by id
  std::vector<int> first_ids_, last_ids_;  // around every text
};

}  // namespace fw::models
