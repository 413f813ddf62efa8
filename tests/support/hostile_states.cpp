#include "support/hostile_states.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace hostile {

namespace {

using Counters = std::vector<std::pair<std::string, std::int64_t>>;

template <class F> void for_each_counter(const Subject& s, const F& f) {
  fw::detail::visit_leaves(&s.state, 1,
                           [&](const fw::detail::Leaf* leaf, const fw::detail::LeafPath& path) {
                             if (leaf->scalar == fw::detail::ScalarKind::integer && !leaf->is_array)
                               f(path.text(), *leaf);
                           });
}

// True if the text names the counter, or a member that it is in.
bool names(const std::string& text, std::string path) {
  while (!path.empty() && text.find(path.substr(path.rfind('.') + 1)) == std::string::npos)
    path.resize(path.rfind('.') + 1 > 0 ? path.rfind('.') : 0);
  return !path.empty();
}

void set(const Subject& s, const Counters& counters) {
  std::size_t found = 0;
  for_each_counter(s, [&](const std::string& path, const fw::detail::Leaf& leaf) {
    for (const auto& [name, value] : counters)
      if (name == path) found += leaf.store_integer(0, value);
  });
  REQUIRE(found == counters.size());
}

void check_message(const std::string& message, const Counters& counters) {
  INFO(message);
  CHECK(std::any_of(counters.begin(), counters.end(),
                    [&](const auto& counter) { return names(message, counter.first); }));
  CHECK(message.find(" is ") != std::string::npos);
  CHECK(message.find("expected ") != std::string::npos);
}

Bytes file_of(const Subject& s, const Counters& counters) {
  set(s, counters);
  const Bytes file = s.save();
  s.restore();
  return file;
}

// Every call continues from the state of a load or of a hand.
template <class Set> void expect_accepted(const Subject& s, const Set& set_state) {
  for (const auto& use : s.uses) {
    set_state();
    CHECK_NOTHROW(use());
    s.restore();
  }
}

}  // namespace

void expect_refused(const Subject& s, const Counters& counters) {
  const Bytes file = file_of(s, counters);
  check_message(error_of<fw::io::SafeTensorsError>([&] { s.load_for_owner(file); }), counters);
  for (const auto& use : s.uses) {
    set(s, counters);
    const Bytes by_hand = s.save();
    check_message(error_of<std::invalid_argument>(use), counters);
    CHECK(s.save() == by_hand);
    s.restore();
  }
}

void try_counters(const Subject& s, const std::vector<std::string>& free_counters) {
  Counters all;
  for_each_counter(s, [&](const std::string& path, const auto&) { all.emplace_back(path, 0); });
  REQUIRE(!all.empty());
  const Bytes reached = s.save();
  for (const auto& [path, unused] : all) {
    INFO(path);
    for (const std::int64_t value :
         {std::int64_t{-1}, std::int64_t{1} << 62, std::numeric_limits<std::int64_t>::max()}) {
      expect_refused(s, {{path, value}});
      const Bytes file = file_of(s, {{path, value}});
      check_message(error_of<fw::io::SafeTensorsError>([&] { s.load(file); }), {{path, value}});
      CHECK(s.save() == reached);
    }
    const Counters large{{path, 1'000'000'000'000}};
    if (std::find(free_counters.begin(), free_counters.end(), path) == free_counters.end()) {
      expect_refused(s, large);
    } else {
      const Bytes file = file_of(s, large);
      expect_accepted(s, [&] { s.load_for_owner(file); });
      // The largest legal one.
      expect_accepted(s, [&, p = path] { set(s, {{p, (std::int64_t{1} << 62) - 1}}); });
    }
    CHECK(s.save() == reached);
    expect_accepted(s, [] {});
  }
}

}  // namespace hostile
