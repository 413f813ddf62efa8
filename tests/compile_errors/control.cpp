// The control: correct forms of the errors in the other files. It must compile, which shows that
// include paths and flags are right.
#include <span>
#include <vector>

#include "example.hpp"

static_assert(fw::assert_memory<Rule<>>());

// A step of the user's own, whose parameters are conversions.
namespace own {

template <class Numbers> using Ref = Eigen::Ref<Numbers>;
using Vector = Eigen::VectorXf;
using Delta = fw::DeltaRule<float>;
using State = fw::StateOf<Delta>;

void write(const Delta&, State&, Ref<const Vector> k, Ref<const Vector> v, float b);
void read(const Delta&, const State&, Ref<const Vector> q, Ref<Vector> y);
void step(const Delta&, State&, Ref<const Vector> x, Ref<const Vector> q, Ref<Vector> y);
void step(const Delta&, State&, Ref<const Vector> k, Ref<const Vector> v, float b,
          Ref<const Vector> q, Ref<Vector> y);
template <class M>
void scan(const M&, fw::StateOf<M>&, Ref<const Vector> x, Ref<const Vector> q, Ref<Vector> y);

void control() {
  write(delta, state, key, value, beta);
  read(delta, state, query, output);
  step(delta, state, key, query, output);
  step(delta, state, key, value, beta, query, output);
  scan(delta, state, key, query, output);
}

}  // namespace own

void control() {
  fw::step(delta, state, {key, value, beta}, {query}, {output});
  const Eigen::VectorXf sum = key + query;
  fw::step(delta, state, {sum, value, beta}, {query}, {output});
  const std::span<const float> keys(key.data(), 3);
  std::vector<float> to(4);
  fw::step(delta, state, {keys, value, beta}, {query}, {to});
  fw::step(delta, state, {keys, value, beta}, {query}, {std::span<float>(to)});
}
