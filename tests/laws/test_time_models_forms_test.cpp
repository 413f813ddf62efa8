#include <fastweights/memories/rules/test_time_training.hpp>
#include <fastweights/memories/rules/titans_learner.hpp>

#include "support/laws.hpp"
#include "support/random_start.hpp"

namespace {

using laws::Started;

template <class S> using TttLinear = fw::TttLinear<S>;
template <class S> using TttMlp = fw::TttMlp<S>;
template <class S> using TitansMlp = fw::TitansMlp<S>;
template <class S> using FixedTttMlp = fw::TttMlp<S, 3, 5>;
template <class S> using FixedTitansMlp = fw::TitansMlp<S, 4, 3, 5>;

TEST_CASE("TTT with a linear model in float follows double", "[laws][ttt]") {
  laws::float_follows_double(Started<TttLinear, double>({4}, {.batch = 3}), false);
}
TEST_CASE("the memory of Titans with an MLP in float follows double", "[laws][titans]") {
  laws::float_follows_double(Started<TitansMlp, double>({4, 3}, {.model = {5}}), false);
}
TEST_CASE("MLPs that are trained at test time have fixed sizes", "[laws][ttt][titans]") {
  laws::fixed_is_dynamic(Started<FixedTttMlp, double>({}, {.batch = 3}),
                         Started<TttMlp, double>({3}, {.batch = 3, .model = {5}}), false);
  laws::fixed_is_dynamic(Started<FixedTitansMlp, double>(),
                         Started<TitansMlp, double>({4, 3}, {.model = {5}}), false);
}

}  // namespace
