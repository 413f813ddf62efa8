#pragma once

#include <algorithm>
#include <fastweights/models/config.hpp>
#include <fastweights/models/tokenizer/byte_to_unicode.hpp>
#include <optional>
#include <unordered_map>

/// \file
/// Byte pair encoding of a word: Gage 1994, A New Algorithm for Data Compression; Sennrich, Haddow,
/// Birch 2016, Neural Machine Translation of Rare Words with Subword Units, arXiv 1508.07909.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// The tokens of a model, their ids and the merges of a tokenizer.json's entry "model".
class BytePairs {
 public:
  static constexpr int most_ids = 1 << 22;  ///< ids are below this

  /// Throws std::invalid_argument that names `where` and what is wrong.
  BytePairs(const nlohmann::json& model, const std::string& where) : where_(where) {
    if (!model.is_object()) fail("", "expected an object");
    if (!model.contains("vocab") || !model["vocab"].is_object())
      fail("vocab", "expected an object of tokens and ids");
    read_tokens(model["vocab"]);
    if (!model.contains("merges") || !model["merges"].is_array()) fail("merges", "expected a list");
    read_merges(model["merges"]);
    read_bytes();
    nlohmann::json options = nlohmann::json::object();
    for (const auto& [name, value] : model.items())
      if (name != "vocab" && name != "merges") options[name] = value;
    read_options(Config(std::move(options), where));
  }

  /// One more than the largest id.
  std::size_t size() const { return size_; }
  /// The tokens, in letters.
  const std::unordered_map<std::string, int>& ids() const { return ids_; }
  /// The id of a token, or nothing.
  std::optional<int> id_of(const std::string& token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? std::nullopt : std::optional<int>(found->second);
  }

  /// Vectors that encode() uses again for the next word.
  struct Scratch {
    /// A piece of the word, which grows by merges.
    struct Symbol {
      int id;             ///< −1 once it is merged into the one before
      int before, after;  ///< neighbours, −1 at the ends
    };
    /// A pair of neighbours that can be merged.
    struct Candidate {
      int rank, position, result;  ///< of the merge, where it is, and the id that it gives
    };
    std::vector<Symbol> symbols;   ///< of the word
    std::vector<Candidate> queue;  ///< the least rank first
    std::size_t pairs = 0;         ///< looked up for the word, less than 3 a byte
  };

  /// Adds the tokens of a word: of all pairs of neighbours, the one of the least rank is merged
  /// first, the leftmost among equals. O(n log n) of the word's bytes.
  void encode(std::string_view word, std::vector<int>& ids, Scratch& scratch) const {
    if (ignores_merges_)
      if (const auto whole = id_of(letters_of(word))) {
        ids.push_back(*whole);
        return;
      }
    auto& symbols = scratch.symbols;
    symbols.clear();
    scratch.queue.clear();
    scratch.pairs = 0;
    const int n = static_cast<int>(word.size());
    for (int i = 0; i < n; ++i)
      symbols.push_back(
          {id_of_byte(word[static_cast<std::size_t>(i)]), i - 1, i + 1 < n ? i + 1 : -1});
    for (int i = 0; i + 1 < n; ++i) add_candidate(i, scratch);
    while (!scratch.queue.empty()) merge_first(scratch);
    for (const auto& symbol : symbols)
      if (symbol.id >= 0) ids.push_back(symbol.id);
  }

 private:
  struct Merge {
    int left, right, rank, result;
    bool operator<(const Merge& other) const {
      return left != other.left ? left < other.left : right < other.right;
    }
  };

  void read_tokens(const nlohmann::json& vocabulary) {
    std::vector<const std::string*> tokens;  // by id
    for (const auto& [token, id] : vocabulary.items()) {
      if (!id.is_number_integer() || id.get<double>() < 0 || id.get<double>() >= most_ids)
        fail("vocab", "token " + shown(token) + ": expected an id of 0 to " +
                          std::to_string(most_ids - 1) + ", is " + id.dump().substr(0, 40));
      const auto i = id.get<std::size_t>();
      if (i >= tokens.size()) tokens.resize(i + 1, nullptr);
      if (tokens[i] != nullptr)
        fail("vocab", "tokens " + shown(*tokens[i]) + " and " + shown(token) + " have the id " +
                          std::to_string(i));
      tokens[i] = &ids_.emplace(token, static_cast<int>(i)).first->first;
    }
    size_ = tokens.size();
  }

  void read_merges(const nlohmann::json& merges) {
    for (const nlohmann::json& each : merges) {
      const auto [left, right] = pair(each);
      const auto result = left + right;
      const int rank = static_cast<int>(merges_.size());
      merges_.push_back({known(left, rank), known(right, rank), rank, known(result, rank)});
    }
    std::sort(merges_.begin(), merges_.end());
    const auto twice =
        std::adjacent_find(merges_.begin(), merges_.end(),
                           [](const Merge& a, const Merge& b) { return !(a < b) && !(b < a); });
    if (twice != merges_.end())
      fail("merges", "entries " + std::to_string(std::min(twice[0].rank, twice[1].rank)) + " and " +
                         std::to_string(std::max(twice[0].rank, twice[1].rank)) + " are the same");
    first_.assign(size_ + 1, 0);
    for (const Merge& merge : merges_) ++first_[static_cast<std::size_t>(merge.left) + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  }

  // "a b" or ["a", "b"].
  std::pair<std::string, std::string> pair(const nlohmann::json& entry) const {
    const std::string place = "entry " + std::to_string(merges_.size());
    if (entry.is_string()) {
      const auto& text = entry.get_ref<const std::string&>();
      const std::size_t space = text.find(' ');
      if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
        fail("merges", place + ": expected two tokens and a space, is " + shown(text));
      return {text.substr(0, space), text.substr(space + 1)};
    }
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_string())
      fail("merges", place + ": expected a text or a list of two texts");
    return {entry[0].get<std::string>(), entry[1].get<std::string>()};
  }
  int known(const std::string& token, int rank) const {
    const auto id = id_of(token);
    if (!id)
      fail("merges", "entry " + std::to_string(rank) + ": token " + shown(token) +
                         " is not in the vocabulary");
    return *id;
  }

  void read_bytes() {
    for (std::size_t b = 0; b < 256; ++b) {
      const char byte = static_cast<char>(b);
      bytes_[b] = id_of(letters_of({&byte, 1})).value_or(-1);
    }
  }

  void read_options(const Config& options) {
    options.expect("type", {"BPE"});
    if (options.has("dropout") && options.number("dropout") != 0)
      options.fail("dropout", "supported is null");
    options.expect("continuing_subword_prefix", {""});
    options.expect("end_of_word_suffix", {""});
    options.expect_flag("byte_fallback", false);
    options.flag("fuse_unk");
    // Without bytes that are unknown, there is no use of it.
    if (!options.text("unk_token").empty() &&
        std::find(bytes_.begin(), bytes_.end(), -1) != bytes_.end())
      options.fail("unk_token", "supported is null, since some bytes have no token");
    ignores_merges_ = options.flag("ignore_merges");
  }

  int id_of_byte(char byte) const {
    const int id = bytes_[static_cast<unsigned char>(byte)];
    if (id < 0)
      fail("vocab", "the byte " + std::to_string(static_cast<unsigned char>(byte)) +
                        " of the text has no token");
    return id;
  }

  const Merge* find(int left, int right) const {
    const auto i = static_cast<std::size_t>(left);
    const auto begin = merges_.begin() + first_[i], end = merges_.begin() + first_[i + 1];
    const auto found = std::lower_bound(begin, end, Merge{left, right, 0, 0});
    return found == end || found->right != right ? nullptr : &*found;
  }

  // The pair of a symbol and the one after it.
  void add_candidate(int position, Scratch& scratch) const {
    ++scratch.pairs;
    const auto& symbol = scratch.symbols[static_cast<std::size_t>(position)];
    const auto& after = scratch.symbols[static_cast<std::size_t>(symbol.after)];
    if (const Merge* merge = find(symbol.id, after.id)) {
      scratch.queue.push_back({merge->rank, position, merge->result});
      std::push_heap(scratch.queue.begin(), scratch.queue.end(), comes_later);
    }
  }

  void merge_first(Scratch& scratch) const {
    std::pop_heap(scratch.queue.begin(), scratch.queue.end(), comes_later);
    const auto [rank, position, result] = scratch.queue.back();
    scratch.queue.pop_back();
    const auto at = [&](int i) -> auto& { return scratch.symbols[static_cast<std::size_t>(i)]; };
    auto& symbol = at(position);
    if (symbol.id < 0 || symbol.after < 0) return;
    auto& after = at(symbol.after);
    const Merge* merge = find(symbol.id, after.id);
    if (merge == nullptr || merge->rank != rank) return;  // one of the two is another by now
    symbol.id = result;
    after.id = -1;
    symbol.after = after.after;
    if (symbol.after >= 0) {
      at(symbol.after).before = position;
      add_candidate(position, scratch);
    }
    if (symbol.before >= 0) add_candidate(symbol.before, scratch);
  }

  static bool comes_later(const Scratch::Candidate& a, const Scratch::Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  }

  static std::string shown(const std::string& token) { return '"' + token.substr(0, 40) + '"'; }
  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    fw::detail::throw_invalid({where_, ": ", name, ": ", what});
  }

  std::string where_;
  std::unordered_map<std::string, int> ids_;
  std::size_t size_ = 0;
  std::vector<Merge> merges_;          // by left, then right
  std::vector<std::ptrdiff_t> first_;  // where the merges of a left token begin
  std::array<int, 256> bytes_{};
  bool ignores_merges_ = false;
};

}  // namespace fw::models
