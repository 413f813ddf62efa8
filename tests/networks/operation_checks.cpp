#include "networks/operation_checks.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/queue_parallel.hpp"

namespace operation_checks {

template Matrix<double> run(const Net&, State&, const Matrix<double>&, Net::Trace&, fw::Pass);
template Matrix<Complex> run(const ComplexNet&, State&, const Matrix<Complex>&, ComplexNet::Trace&,
                             fw::Pass);
template Trained train(const Net&, State&, const Matrix<double>&, const Matrix<double>&,
                       Net::Trace&);

Matrix<double> random_matrix(Index rows, Index cols, fw::Random& random) {
  Matrix<double> m(rows, cols);
  random.fill(m);
  return m.unaryExpr([](double x) { return x + std::copysign(0.05, x); });
}

Net network_of(Index rows, const Function& f) {
  Builder<double> builder;
  Net network = builder.build(f(builder.input(rows)));
  fw::Random random(5);
  fw::initialise(network, random);
  for (auto& weight : network.weights)
    weight.value += 0.3 * random_matrix(weight.value.rows(), weight.value.cols(), random);
  return network;
}

void check_equal(const Matrix<double>& given, const Matrix<double>& expected, double limit) {
  REQUIRE(given.rows() == expected.rows());
  REQUIRE(given.cols() == expected.cols());
  CHECK(largest_entry(given - expected) <= limit * std::max(largest_entry(expected), 1.0));
}

void check_gradients(const Net& network, const Function& f, Index steps) {
  constexpr Index sequences = 2;
  fw::Random random(7);
  Matrix<double> x = random_matrix(network.inputs(), sequences * steps, random);
  const Matrix<double> dy = random_matrix(network.outputs(), x.cols(), random);
  const Matrix<double> before = random_matrix(network.inputs(), sequences * 2, random);
  const bool continues = !network.graph->from_start;
  State state = network.initial_state(sequences);
  Net::Trace trace;
  if (continues) run(network, state, before, trace);
  run(network, state, x, trace, fw::Pass::train);
  Matrix<double> dx = Matrix<double>::Constant(x.rows(), x.cols(), not_a_number);
  Net unused = fw::zero_gradient(network), grad = unused;
  for (auto& weight : grad.weights) weight.value.setOnes();
  network.backward(x, trace, dy, dx, unused);  // makes the buffers of gradients
  for (auto& gradient : trace.gradients) gradient.setConstant(not_a_number);
  network.backward(x, trace, dy, dx, grad);

  ComplexNet twin = complex_network_of(network, f);
  ComplexNet::Trace complex_trace;
  State used = twin.initial_state(sequences);
  if (continues) run(twin, used, Matrix<Complex>(before.cast<Complex>()), complex_trace);
  Matrix<Complex> complex_x = x.cast<Complex>();
  const auto loss = [&] {
    State start = used;
    return run(twin, start, complex_x, complex_trace).cwiseProduct(dy.cast<Complex>()).sum();
  };
  check_equal(dx, derivatives(complex_x, loss), 1e-10);
  for (std::size_t i = 0; i < network.weights.size(); ++i) {
    INFO(network.weights[i].name);
    check_equal((grad.weights[i].value.array() - 1).matrix(),
                derivatives(twin.weights[i].value, loss), 1e-10);
  }
}

Matrix<double> input_gradient(const Net& network, const Matrix<double>& x) {
  State state = network.initial_state();
  Net::Trace trace;
  const Matrix<double> y = run(network, state, x, trace, fw::Pass::train);
  const Matrix<double> dy = Matrix<double>::Ones(y.rows(), y.cols());
  Matrix<double> dx = Matrix<double>::Constant(x.rows(), x.cols(), not_a_number);
  Net grad = fw::zero_gradient(network);
  network.backward(x, trace, dy, dx, grad);
  return dx;
}

Matrix<double> tokens(const Matrix<double>& x, Index sequences, Index first, Index count) {
  const Index steps = x.cols() / sequences;
  Matrix<double> some(x.rows(), sequences * count);
  for (Index b = 0; b < sequences; ++b)
    some.middleCols(b * count, count) = x.middleCols(b * steps + first, count);
  return some;
}

// Every piece in a process of its own.
static void check_over_processes(const Net& network, Index sequences, const Matrix<double>& x,
                                 const Matrix<double>& whole, Index piece) {
  const Index steps = x.cols() / sequences;
  QueueParallel parallel(static_cast<std::size_t>((steps + piece - 1) / piece));
  for (Index t = 0; t < steps; t += piece) {
    const Index count = std::min(piece, steps - t);
    parallel.go_to(static_cast<std::size_t>(t / piece));
    Net::Trace trace;
    State state = network.initial_state(sequences);  // is received, but for the first piece
    check_equal(
        run(network, state, tokens(x, sequences, t, count), trace, fw::Pass::infer.over(parallel)),
        tokens(whole, sequences, t, count), 1e-13);
    CHECK(state.positions == Positions::Constant(sequences, t + count));
  }
  CHECK(parallel.is_empty());
}

// True if the network can be trained on a part of a sequence.
static bool trains_in_parts(const Net& network) {
  for (const auto& node : network.graph->train.nodes)
    if (node.has_state && !node.operation->state_gradient(0)) return false;
  return true;
}

// So many tokens in pieces, the last of which may be shorter.
static std::vector<Index> pieces_of(Index steps, Index piece) {
  std::vector<Index> lengths(static_cast<std::size_t>(steps / piece), piece);
  if (steps % piece > 0) lengths.push_back(steps % piece);
  return lengths;
}

// Puts tokens first, first + 1, … of every sequence back.
static void put_tokens(Matrix<double>& all, Index sequences, Index first,
                       const Matrix<double>& some) {
  const Index count = some.cols() / sequences;
  for (Index b = 0; b < sequences; ++b)
    all.middleCols(b * (all.cols() / sequences) + first, count) = some.middleCols(b * count, count);
}

InPieces::InPieces(const Net& network, Index count, const Matrix<double>& x,
                   const Matrix<double>& dy, const std::vector<Index>& lengths)
    : sequences(count), y(network.outputs(), x.cols()), dx(x), grad(fw::zero_gradient(network)) {
  QueueParallel parallel(lengths.size());
  std::vector<Net::Trace> traces(lengths.size());
  Index first = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    parallel.go_to(i);
    last = network.initial_state(sequences);  // is received, but for the first piece
    put_tokens(y, sequences, first,
               run(network, last, tokens(x, sequences, first, lengths[i]), traces[i],
                   fw::Pass::train.over(parallel)));
    first += lengths[i];
  }
  for (std::size_t i = lengths.size(); i-- > 0;) {
    first -= lengths[i];
    parallel.go_to(i);
    const Matrix<double> in = tokens(x, sequences, first, lengths[i]);
    Matrix<double> din = Matrix<double>::Constant(in.rows(), in.cols(), not_a_number);
    network.backward(in, traces[i], tokens(dy, sequences, first, lengths[i]), din, grad);
    put_tokens(dx, sequences, first, din);
  }
  CHECK(parallel.is_empty());
}

void InPieces::check_same(const InPieces& whole) const {
  check_equal(y, whole.y, 1e-12);
  check_equal(dx, whole.dx, 1e-12);
  for (std::size_t i = 0; i < grad.weights.size(); ++i) {
    INFO(grad.weights[i].name);
    check_equal(grad.weights[i].value, whole.grad.weights[i].value, 1e-12);
  }
}

// Training on pieces gives the outputs and gradients of the whole; or it is refused.
static void check_training_in_pieces(const Net& network) {
  constexpr Index sequences = 2, steps = 7;
  fw::Random random(11);
  const Matrix<double> x = random_matrix(network.inputs(), sequences * steps, random);
  const Matrix<double> dy = random_matrix(network.outputs(), x.cols(), random);
  if (!trains_in_parts(network)) {
    CHECK_THROWS_WITH(InPieces(network, sequences, x, dy, {3, 4}),
                      Catch::Matchers::ContainsSubstring("takes whole sequences"));
    return;
  }
  const InPieces whole(network, sequences, x, dy, {steps});
  for (const Index piece : {1, 3}) {
    INFO("trained in pieces of " << piece);
    InPieces(network, sequences, x, dy, pieces_of(steps, piece)).check_same(whole);
  }
}

void check_streaming(const Net& network) {
  constexpr Index sequences = 2, steps = 7;
  fw::Random random(8);
  const Matrix<double> x = random_matrix(network.inputs(), sequences * steps, random);
  Net::Trace trace;
  State state = network.initial_state(sequences);
  const Matrix<double> whole = run(network, state, x, trace, fw::Pass::train);
  for (const Index piece : {1, 2, 5}) {
    INFO("pieces of " << piece);
    State in_pieces = network.initial_state(sequences);
    for (Index t = 0; t < steps; t += piece) {
      const Index count = std::min(piece, steps - t);
      check_equal(run(network, in_pieces, tokens(x, sequences, t, count), trace),
                  tokens(whole, sequences, t, count), 1e-13);
    }
    CHECK(in_pieces.positions == Positions::Constant(sequences, steps));
    check_over_processes(network, sequences, x, whole, piece);
  }
  for (Index b = 0; b < sequences; ++b) {
    State alone = network.initial_state();
    check_equal(run(network, alone, x.middleCols(b * steps, steps), trace),
                whole.middleCols(b * steps, steps), 1e-13);
  }
}

void append_numbers(const fw::detail::Object& part, std::vector<double>& numbers) {
  for_each_array<double>(part, [&](const auto& array) {
    for (const double number : array) numbers.push_back(number);
  });
}

void set_number(State& state, const std::string& path, std::int64_t value) {
  const fw::detail::Object all = fw::detail::object(state);
  bool found = false;
  fw::detail::visit_leaves(&all, 1,
                           [&](const fw::detail::Leaf* leaf, const fw::detail::LeafPath& at) {
                             if (at.text() == path) found = leaf->store_integer(0, value);
                           });
  REQUIRE(found);
}
Matrix<double> numbers_of(State state) {
  std::vector<double> numbers;
  for (const auto& member : state.members) append_numbers(member.part->object(), numbers);
  return Eigen::Map<Eigen::VectorXd>(numbers.data(), Index(numbers.size()));
}

void check_state_gradient(const Net& network, const Function& f, Index steps) {
  constexpr Index sequences = 2;
  if (!trains_in_parts(network)) {
    CHECK_THROWS_WITH(network.state_gradient(),
                      Catch::Matchers::ContainsSubstring("takes no gradient of its state"));
    return;
  }
  fw::Random random(12);
  const Matrix<double> before = random_matrix(network.inputs(), sequences, random);
  const Matrix<double> x = random_matrix(network.inputs(), sequences * steps, random);
  const Matrix<double> dy = random_matrix(network.outputs(), x.cols(), random);
  State state = network.initial_state(sequences), dstate = network.state_gradient(sequences);
  Net::Trace trace;
  run(network, state, before, trace);
  run(network, state, x, trace, fw::Pass::train);
  Matrix<double> dx = x;
  Net grad = fw::zero_gradient(network);
  network.backward(x, trace, dy, dx, grad, {.state = &dstate});

  ComplexNet twin = complex_network_of(network, f);
  ComplexNet::Trace complex_trace;
  State used = twin.initial_state(sequences);
  run(twin, used, Matrix<Complex>(before.cast<Complex>()), complex_trace);
  const auto loss = [&] {
    State start = used;
    return run(twin, start, Matrix<Complex>(x.cast<Complex>()), complex_trace)
        .cwiseProduct(dy.cast<Complex>())
        .sum();
  };
  std::vector<double> expected;
  for (const auto& member : used.members)
    for_each_array<Complex>(member.part->object(), [&](auto array) {
      for (Complex& number : array) {
        const Complex own = number;
        number += Complex(0, 1e-30);
        expected.push_back(loss().imag() / 1e-30);
        number = own;
      }
    });
  const Eigen::Map<const Eigen::VectorXd> all(expected.data(), Index(expected.size()));
  check_equal(numbers_of(dstate), all, 1e-10);
}

// Two train passes, one behind the other, have the gradients of one over both.
static void check_gradients_through_state(const Net& network) {
  if (!trains_in_parts(network)) return;
  constexpr Index first = 7, second = 3;
  fw::Random random(13);
  const Matrix<double> x = random_matrix(network.inputs(), first + second, random);
  const Matrix<double> dy = random_matrix(network.outputs(), x.cols(), random);
  State whole = network.initial_state(), state = whole, dstate = network.state_gradient();
  Net::Trace trace, traces[2];
  const Trained expected = train(network, whole, x, dy, trace);
  Net grad = fw::zero_gradient(network);
  const Matrix<double> in[2] = {x.leftCols(first), x.rightCols(second)};
  for (int i : {0, 1}) run(network, state, in[i], traces[i], fw::Pass::train);
  for (int i : {1, 0}) {
    Matrix<double> dx = in[i];
    const Matrix<double> dout = i == 0 ? dy.leftCols(first) : dy.rightCols(second);
    network.backward(in[i], traces[i], dout, dx, grad, {.state = &dstate});
    check_equal(dx, i == 0 ? expected.dx.leftCols(first) : expected.dx.rightCols(second), 1e-12);
  }
  for (std::size_t i = 0; i < grad.weights.size(); ++i) {
    INFO(grad.weights[i].name);
    check_equal(grad.weights[i].value, expected.grad.weights[i].value, 1e-12);
  }
}

void check_batch(const Net& network, Index sequences, Index steps) {
  INFO(sequences << " sequences of " << steps << " tokens");
  fw::Random random(3);
  const Matrix<double> before = random_matrix(network.inputs(), sequences, random);
  const Matrix<double> x = random_matrix(network.inputs(), sequences * steps, random);
  const Matrix<double> dy = random_matrix(network.outputs(), sequences * steps, random);
  Net::Trace trace, own_trace;
  State together = network.initial_state(sequences);
  const Matrix<double> first = run(network, together, before, trace);
  const Trained all = train(network, together, x, dy, trace);
  Net sum = fw::zero_gradient(network);
  for (Index b = 0; b < sequences; ++b) {
    const auto own = [&](const Matrix<double>& of) -> Matrix<double> {
      return of.middleCols(b * steps, steps);
    };
    State alone = network.initial_state();
    check_equal(first.col(b), run(network, alone, before.col(b), own_trace), 1e-13);
    const Trained each = train(network, alone, own(x), own(dy), own_trace);
    check_equal(own(all.y), each.y, 1e-13);
    check_equal(own(all.dx), each.dx, 1e-12);
    check_equal(numbers_of(together.stream(b)), numbers_of(alone), 1e-13);
    for (std::size_t i = 0; i < sum.weights.size(); ++i)
      sum.weights[i].value += each.grad.weights[i].value;
  }
  for (std::size_t i = 0; i < sum.weights.size(); ++i) {
    INFO(sum.weights[i].name);
    check_equal(all.grad.weights[i].value, sum.weights[i].value, 1e-12);
  }
}

// The outputs of sequences of different lengths, over buffers full of NaN.
static Matrix<double> run_ragged(const Net& network, State& state, const Matrix<double>& x,
                                 Net::Trace& trace, const std::vector<Index>& lengths,
                                 fw::Pass pass = fw::Pass::infer) {
  Matrix<double> y = Matrix<double>::Constant(network.outputs(), x.cols(), not_a_number);
  network.forward(state, x, y, trace, {.pass = pass, .lengths = lengths});
  return y;
}

/// Calls f(b, first column, tokens) for every sequence that has tokens.
template <class F> static void for_sequences(const std::vector<Index>& lengths, const F& f) {
  Index first = 0;
  for (std::size_t b = 0; b < lengths.size(); first += lengths[b++])
    if (lengths[b] > 0) f(b, first, lengths[b]);
}

// Sequences of different lengths give together what each gives alone, also when some are copied,
// join or leave.
static void check_ragged_streaming(const Net& network, fw::Random& random) {
  State together = network.initial_state(3);
  std::vector<State> alone(3, network.initial_state());
  Net::Trace trace;
  const auto step = [&](const std::vector<Index>& lengths) {
    const Index tokens = std::accumulate(lengths.begin(), lengths.end(), Index(0));
    const Matrix<double> x = random_matrix(network.inputs(), tokens, random);
    const Matrix<double> y = run_ragged(network, together, x, trace, lengths);
    for_sequences(lengths, [&](std::size_t b, Index first, Index count) {
      INFO("sequence " << b << " with " << count << " tokens");
      check_equal(y.middleCols(first, count),
                  run(network, alone[b], x.middleCols(first, count), trace), 1e-12);
      CHECK(together.positions[Index(b)] == alone[b].positions[0]);
    });
  };
  step({2, 1, 3});
  step({0, 4, 1});
  step({3, 0, 0});
  State moved = together.stream(2);
  moved.add(together);  // of 2, 0, 1, 2
  moved.remove(1);
  together = moved;
  alone = {alone[2], alone[1], alone[2]};
  step({1, 2, 1});
  step({1, 1, 1});
}

// A gradient of a state, as of what comes behind it.
static State random_state_gradient(const Net& network, Index sequences, fw::Random& random) {
  State dstate = network.state_gradient(sequences);
  for (const auto& member : dstate.members)
    for_each_array<double>(member.part->object(), [&](auto array) {
      for (double& number : array) number = random.uniform() - 0.5;
    });
  return dstate;
}

void check_ragged_gradients(const Net& network, fw::Random& random) {
  const std::vector<Index> lengths{3, 0, 1, 2};
  const Matrix<double> x = random_matrix(network.inputs(), 6, random);
  const Matrix<double> dy = random_matrix(network.outputs(), 6, random);
  State state = network.initial_state(4);
  Net::Trace trace;
  Net grad = fw::zero_gradient(network), sum = grad;
  Matrix<double> dx = Matrix<double>::Constant(x.rows(), 6, not_a_number);
  run_ragged(network, state, x, trace, lengths, fw::Pass::train);
  const bool has_state_gradient = trains_in_parts(network);
  State after, before;
  if (has_state_gradient) before = after = random_state_gradient(network, 4, random);
  network.backward(x, trace, dy, dx, grad, {.state = has_state_gradient ? &before : nullptr});
  const auto of = [](const State& all, std::size_t b) {
    return all.members.empty() ? State() : all.stream(Index(b));
  };
  check_equal(numbers_of(of(before, 1)), numbers_of(of(after, 1)), 0);  // has no tokens
  for_sequences(lengths, [&](std::size_t b, Index first, Index count) {
    INFO("sequence " << b);
    State own_dstate = of(after, b);
    State own = network.initial_state();
    const Matrix<double> own_x = x.middleCols(first, count), own_dy = dy.middleCols(first, count);
    Matrix<double> own_dx = Matrix<double>::Constant(x.rows(), count, not_a_number);
    run(network, own, own_x, trace, fw::Pass::train);
    network.backward(own_x, trace, own_dy, own_dx, sum,
                     {.state = has_state_gradient ? &own_dstate : nullptr});
    check_equal(dx.middleCols(first, count), own_dx, 1e-12);
    check_equal(numbers_of(of(before, b)), numbers_of(own_dstate), 1e-12);
  });
  for (std::size_t i = 0; i < grad.weights.size(); ++i) {
    INFO(grad.weights[i].name);
    check_equal(grad.weights[i].value, sum.weights[i].value, 1e-12);
  }
}

/// Sequences of a state that rolls back, beside all tokens that each still has.
class RolledBack {
 public:
  static constexpr Index most = 3;  ///< R

  RolledBack(const Net& network, fw::Random& random)
      : network_(network),
        random_(random),
        state_(network.initial_state({.sequences = 3, .roll_back = most})),
        texts_(3, Matrix<double>(network.inputs(), 0)) {}

  /// Reads so many tokens of every sequence, whose outputs are those of the whole text at once.
  void read(const std::vector<Index>& lengths) {
    const Index count = std::accumulate(lengths.begin(), lengths.end(), Index(0));
    const Matrix<double> x = random_matrix(network_.inputs(), count, random_);
    const Matrix<double> y = run_ragged(network_, state_, x, trace_, lengths);
    for_sequences(lengths, [&](std::size_t b, Index first, Index steps) {
      INFO("sequence " << b << " with " << steps << " tokens after " << texts_[b].cols());
      const Index before = texts_[b].cols();
      texts_[b].conservativeResize(Eigen::NoChange, before + steps);
      texts_[b].rightCols(steps) = x.middleCols(first, steps);
      State whole = network_.initial_state();
      Net::Trace trace;
      check_equal(y.middleCols(first, steps),
                  run(network_, whole, texts_[b], trace).rightCols(steps), 1e-12);
      CHECK(state_.positions[Index(b)] == texts_[b].cols());
    });
  }
  /// Rolls back as many tokens of every sequence as can be, at most these.
  void roll_back(const std::vector<Index>& tokens) {
    for (std::size_t b = 0; b < tokens.size(); ++b) {
      const Index count = std::min(tokens[b], state_.most_rolled_back(Index(b)));
      state_.roll_back(count, Index(b));
      texts_[b].conservativeResize(Eigen::NoChange, texts_[b].cols() - count);
    }
  }
  /// Sequence 2 is copied in front of the others, and sequence 1 leaves.
  void move() {
    State moved = state_.stream(2);
    moved.add(state_);
    moved.remove(2);
    state_ = moved;
    texts_ = {texts_[2], texts_[0], texts_[2]};
  }
  Index left(Index b) const { return state_.most_rolled_back(b); }

 private:
  const Net& network_;
  fw::Random& random_;
  State state_;
  Net::Trace trace_;
  std::vector<Matrix<double>> texts_;
};

void check_roll_back(const Net& network, fw::Random& random) {
  RolledBack streams(network, random);
  streams.read({2, 1, 4});
  streams.roll_back({2, 0, 3});
  streams.read({1, 30, 1});
  streams.roll_back({1, 3, 1});
  for (const Index b : {0, 1}) CHECK(streams.left(b) == 0);
  streams.read({1, 1, 0});
  streams.roll_back({0, 1, 1});
  streams.move();
  streams.read({0, 2, 9});
  streams.roll_back({1, 1, 2});
  streams.roll_back({0, 1, 1});
  const auto draws = [&](int most) {
    std::vector<Index> numbers(3);
    for (Index& each : numbers) each = Index(random.below(std::uint64_t(most)));
    return numbers;
  };
  for (int i = 0; i < 25; ++i) {
    const std::vector<Index> lengths = draws(i % 5 == 4 ? 14 : 3);
    if (lengths != std::vector<Index>(3)) streams.read(lengths);
    if (i % 3 == 0) streams.roll_back(draws(RolledBack::most + 1));
    if (i % 8 == 7) streams.move();
  }
}

// Outputs and gradients in float, from a used state, are those in double but for rounding errors.
static void check_float(const Net& network, const Function& f) {
  if (!f.has_float()) return;
  constexpr Index sequences = 2, steps = 6;
  fw::Random random(14);
  const Matrix<double> before = random_matrix(network.inputs(), sequences, random);
  const Matrix<double> x = random_matrix(network.inputs(), sequences * steps, random);
  const Matrix<double> dy = random_matrix(network.outputs(), x.cols(), random);
  const auto twin = network_with_weights_of<float>(network, f);
  Net::Trace trace;
  fw::networks::Network<float>::Trace float_trace;
  State state = network.initial_state(sequences), float_state = twin.initial_state(sequences);
  constexpr double limit = 1e-4;  // a thousand roundings
  check_equal(run(twin, float_state, before.cast<float>(), float_trace).cast<double>(),
              run(network, state, before, trace), limit);
  const Trained all = train(network, state, x, dy, trace);
  const auto given = train(twin, float_state, x.cast<float>(), dy.cast<float>(), float_trace);
  check_equal(given.y.cast<double>(), all.y, limit);
  check_equal(given.dx.cast<double>(), all.dx, limit);
  for (std::size_t i = 0; i < network.weights.size(); ++i) {
    INFO(network.weights[i].name);
    check_equal(given.grad.weights[i].value.cast<double>(), all.grad.weights[i].value, limit);
  }
}

void check_operation(Index rows, const Function& f) {
  INFO("rows " << rows);
  const Net network = network_of(rows, f);
  check_streaming(network);
  check_training_in_pieces(network);
  fw::Random random(9);
  check_ragged_streaming(network, random);
  check_ragged_gradients(network, random);
  check_roll_back(network, random);
  check_gradients(network, f);
  check_float(network, f);
  check_state_gradient(network, f);
  check_gradients_through_state(network);
}

void check_operation(const Function& f) {
  for (const Index rows : {1, 3, 17}) check_operation(rows, f);
}

Matrix<double> value_of(const Function& f, const Matrix<double>& x) {
  Builder<double> builder;
  const Net network = builder.build(f(builder.input(x.rows())));
  State state = network.initial_state();
  Net::Trace trace;
  return run(network, state, x, trace);
}

}  // namespace operation_checks
