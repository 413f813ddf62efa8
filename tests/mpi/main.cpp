// Sequences over the ranks of MPI against one process that works through the same parts.
//
//     mpirun -n 3 build/release/tests/fastweights_mpi_tests
//
// Every rank draws all tokens and computes all of it by itself, so that it can compare its part.
// Prints a line a memory: the largest differences to the same parts, which are 0, and to a scan and
// a backward pass without parts. Ranks have 0 to 8 tokens. With --die FILE a rank dies in training;
// with --go-on FILE any number of ranks continues from the checkpoint. With --die-in-scan METHOD a
// rank dies in a scan.

#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/mpi/gradient_sum.hpp>

#include "mpi/memories.hpp"
#include "mpi/parts.hpp"

namespace {

long long sent = 0;  // bytes of all messages of this rank

long long bytes_of(int count, MPI_Datatype type) {
  int size = 0;
  MPI_Type_size(type, &size);
  return static_cast<long long>(size) * count;
}
int others_of(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size - 1;
}

}  // namespace

// MPI calls the functions of the program if it has them; theirs begin with P.
extern "C" {

int MPI_Send(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  sent += bytes_of(count, type);
  return PMPI_Send(buffer, count, type, to, tag, comm);
}
int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  sent += bytes_of(count, type);
  return PMPI_Isend(buffer, count, type, to, tag, comm, request);
}
int MPI_Ialltoall(const void* from, int count, MPI_Datatype type, void* into, int into_count,
                  MPI_Datatype into_type, MPI_Comm comm, MPI_Request* request) {
  sent += others_of(comm) * bytes_of(count, type);
  return PMPI_Ialltoall(from, count, type, into, into_count, into_type, comm, request);
}
int MPI_Iallgather(const void* from, int count, MPI_Datatype type, void* into, int into_count,
                   MPI_Datatype into_type, MPI_Comm comm, MPI_Request* request) {
  sent += others_of(comm) * bytes_of(count, type);
  return PMPI_Iallgather(from, count, type, into, into_count, into_type, comm, request);
}

}  // extern "C"

namespace mpi_test {

long long bytes_sent() { return sent; }

namespace {

int failures = 0;

template <class F> std::string message_of(const F& f) {
  try {
    f();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

// A wrong argument of one rank ends the call on all of them.
void check_errors(const fw::mpi::Ranks& ranks) {
  const fw::DeltaRule<float> m({.key_size = 4});
  const Eigen::MatrixXf k = Eigen::MatrixXf::Ones(4, 6);
  const Eigen::RowVectorXf beta = Eigen::RowVectorXf::Ones(6),
                           short_beta = Eigen::RowVectorXf::Ones(5);
  Eigen::MatrixXf y(4, 6);
  std::vector states(2, fw::initial_state(m));
  const auto scan = [&](std::size_t heads, const Eigen::RowVectorXf& strengths) {
    return message_of([&] {
      fw::mpi::scan(m, std::span(states).first(heads), {k, k, strengths}, {k}, {y}, MPI_COMM_WORLD);
    });
  };
  const std::string message = scan(2, ranks.is_last() ? short_beta : beta);
  expect(message == (ranks.is_last() ? "DeltaRule: beta has 5 columns, the sequence expects 6"
                                     : "mpi::scan: another rank has an error"),
         "the error of the wrong argument on its rank");
  expect(states[0].W.isZero(0), "an error leaves the states unchanged");
  expect(!scan(0, beta).empty(), "no states are refused");
  if (ranks.size() > 1)
    expect(scan(ranks.is_first() ? 2 : 1, beta).find("the number of states is") == 11,
           "different numbers of states are refused");
  std::vector<fw::Checkpoints<fw::DeltaRule<float>>> checkpoints(ranks.is_last() ? 1 : 2);
  const std::string too_few = message_of([&] {
    fw::mpi::scan(m, std::span(states), {k, k, beta}, {k}, {y}, std::span(checkpoints),
                  MPI_COMM_WORLD);
  });
  expect(!too_few.empty(), "too few checkpoints are refused");
  checkpoints.resize(2);
  const std::string by_heads = message_of([&] {
    fw::mpi::scan(m, std::span(states), {k, k, beta}, {k}, {y}, std::span(checkpoints),
                  MPI_COMM_WORLD, fw::mpi::Method::heads);
  });
  expect(by_heads == "DeltaRule: mpi::scan by heads, which keeps no checkpoints",
         "a scan by heads keeps no checkpoints");
  expect(scan(2, beta).empty(), "a valid call after errors");
  // An error of a memory, in a scan by heads: the second token of a head does not fit.
  const fw::KeyValueCache<float> full({.key_size = 4},
                                      {.capacity = 1, .when_full = fw::WhenFull::refuse});
  std::vector caches(2, fw::initial_state(full));
  bool ended = false;
  try {
    fw::mpi::scan(full, std::span(caches), {k, k}, {k}, {y}, MPI_COMM_WORLD,
                  fw::mpi::Method::heads);
  } catch (const std::exception&) {
    ended = true;
  }
  expect(ended, "an error of a memory ends a scan by heads on all ranks");
}

// The last rank has other shapes than the others, of as many bytes: all of them say so.
void check_shapes(const fw::mpi::Ranks& ranks) {
  if (ranks.size() == 1) return;
  const bool is_other = ranks.is_last();
  const auto is_said = [&](const std::string& message, const std::string& mine) {
    return message.find(mine) != message.npos &&
           message.find("; another rank has others, expected the same on all") != message.npos;
  };
  const Index dk = is_other ? 2 : 4, dv = is_other ? 12 : 6;
  const fw::DeltaRule<float> m({.key_size = dk, .value_size = dv});
  using M = std::remove_const_t<decltype(m)>;
  const Eigen::MatrixXf k = Eigen::MatrixXf::Ones(dk, 6), v = Eigen::MatrixXf::Ones(dv, 6);
  const Eigen::RowVectorXf beta = Eigen::RowVectorXf::Ones(6);
  Eigen::MatrixXf y = v, dk_ = k, dv_ = v, dq = k;
  Eigen::RowVectorXf dbeta = beta;
  std::vector states(2, fw::initial_state(m));
  const std::string own = is_other ? "state W 12x2, inputs key 2x1" : "state W 6x4, inputs key 4x1";
  for (const fw::mpi::Method method : {fw::mpi::Method::automatic, fw::mpi::Method::chain,
                                       fw::mpi::Method::segments, fw::mpi::Method::heads})
    expect(
        is_said(
            message_of([&] {
              fw::mpi::scan(m, std::span(states), {k, v, beta}, {k}, {y}, MPI_COMM_WORLD, method);
            }),
            own),
        "states of other shapes are refused on all ranks");
  expect(states[0].W.isZero(0), "states of other shapes stay");
  std::vector<fw::Checkpoints<M>> checkpoints(2);
  for (std::size_t h = 0; h < 2; ++h) {
    const Index first = static_cast<Index>(h) * 3;
    auto state = states[h];
    fw::scan(m, state, {k.middleCols(first, 3), v.middleCols(first, 3), beta.segment(first, 3)},
             {k.middleCols(first, 3)}, {y.middleCols(first, 3)}, checkpoints[h]);
  }
  expect(is_said(message_of([&] {
                   fw::mpi::backward(m, std::span(checkpoints), {k, v, beta}, {k}, {y},
                                     std::span(states), {dk_, dv_, dbeta}, {dq}, MPI_COMM_WORLD);
                 }),
                 own),
         "gradients of other shapes are refused on all ranks");
}

// Arrays of a sum: the last rank has another shape, another type, or fewer of them.
void check_shapes_of_sums(const fw::mpi::Ranks& ranks) {
  if (ranks.size() == 1) return;
  const bool is_other = ranks.is_last();
  const auto message = [&](fw::mpi::SummationOrder order, Index least, const auto& add) {
    fw::mpi::GradientSum sum(MPI_COMM_WORLD, order, least);
    const std::string text = message_of([&] {
      add(sum);
      sum.finish();
    });
    Eigen::MatrixXf ones = Eigen::MatrixXf::Ones(2, 2);
    sum.add(fw::detail::object(ones));  // the next sum of the object, on all ranks
    sum.finish();
    expect(ones(1, 1) == static_cast<float>(ranks.size()), "a sum after an error");
    return text;
  };
  const std::string others = "; another rank has others, expected the same on all";
  for (const fw::mpi::SummationOrder order :
       {fw::mpi::SummationOrder::ranks, fw::mpi::SummationOrder::any})
    for (const Index least : {Index(1), Index(16), Index(1) << 20}) {
      Eigen::MatrixXf same = Eigen::MatrixXf::Ones(7, 3),
                      other = Eigen::MatrixXf::Ones(is_other ? 3 : 5, 5),
                      turned = Eigen::MatrixXf::Ones(is_other ? 4 : 6, is_other ? 6 : 4);
      Eigen::VectorXi integers = Eigen::VectorXi::Ones(4);
      const auto expect_others = [&](const auto& add, const char* what) {
        expect(message(order, least, add).find(others) != std::string::npos, what);
      };
      const auto object = [](auto& matrix) { return fw::detail::object(matrix); };
      expect_others(
          [&](auto& sum) {
            sum.add(object(same));
            sum.add(object(other));
          },
          "an array of another size");
      expect_others(
          [&](auto& sum) {
            sum.add(object(turned));
            sum.add(object(same));
          },
          "an array of as many numbers and another shape");
      expect_others(
          [&](auto& sum) {
            sum.add(object(same));
            if (!is_other) sum.add(object(same));
          },
          "fewer arrays");
      const std::string of_type = message(order, least, [&](auto& sum) {
        sum.add(object(same));
        if (is_other)
          sum.add(object(integers));
        else
          sum.add(object(same));
      });
      expect(of_type.find(is_other ? "an array is neither float nor double" : others) !=
                 std::string::npos,
             "an array of another type");
      expect(other == Eigen::MatrixXf::Ones(other.rows(), 5) &&
                 turned == Eigen::MatrixXf::Ones(turned.rows(), turned.cols()),
             "arrays keep their values after an error");
    }
}

// A rank sends the states of all heads forward, and their gradients backward: nothing else.
void check_bytes(const fw::mpi::Ranks& ranks) {
  constexpr Index d = 128, heads = 16;
  const fw::DeltaRule<float> m({.key_size = d});
  using M = std::remove_const_t<decltype(m)>;
  const Eigen::MatrixXf x = Eigen::MatrixXf::Zero(d, heads);
  const Eigen::RowVectorXf beta = Eigen::RowVectorXf::Zero(heads);
  Eigen::MatrixXf y = x, dk = x, dv = x, dq = x;
  Eigen::RowVectorXf dbeta = beta;
  std::vector states(heads, fw::initial_state(m));
  std::vector<fw::Checkpoints<M>> checkpoints(heads);
  sent = 0;
  fw::mpi::scan(m, std::span(states), {x, x, beta}, {x}, {y}, std::span(checkpoints),
                MPI_COMM_WORLD);
  const long long forward = sent;
  fw::mpi::backward(m, std::span(checkpoints), {x, x, beta}, {x}, {y}, std::span(states),
                    {dk, dv, dbeta}, {dq}, MPI_COMM_WORLD);
  constexpr long long all = heads * d * d * Index{sizeof(float)};
  expect(forward == (ranks.is_last() ? 0 : all), "the bytes of a scan");
  expect(sent - forward == (ranks.is_first() ? 0 : all), "the bytes of a backward pass");
  sent = 0;
  fw::mpi::scan(m, std::span(states), {x, x, beta}, {x}, {y}, MPI_COMM_WORLD,
                fw::mpi::Method::heads);
  // Inputs of the heads of others, and outputs and states of its own heads.
  const Index own = heads / ranks.size(), others = heads - own, state = d * d;
  const Index numbers = others * (3 * d + 1) + own * (ranks.size() - 1) * (d + state) +
                        (ranks.is_first() ? others * state : 0);
  if (heads % ranks.size() == 0)
    expect(sent == numbers * Index{sizeof(float)}, "the bytes of a scan by heads");
  Eigen::MatrixXf sums = Eigen::MatrixXf::Ones(ranks.size(), 100);
  sent = 0;
  fw::mpi::GradientSum sum(MPI_COMM_WORLD);
  sum.add(fw::detail::object(sums));
  sum.finish();
  expect(sent == 2 * 400 * (ranks.size() - 1), "the bytes of a sum");
  expect((sums.array() == static_cast<float>(ranks.size())).all(), "a sum");
  if (ranks.is_first())
    std::printf("mpi bytes of a rank, d = 128, 16 heads, float: %lld forward, %lld backward\n",
                ranks.size() > 1 ? all : 0, ranks.size() > 1 ? all : 0);
}

}  // namespace

void expect(bool holds, const char* what) {
  if (holds) return;
  ++failures;
  std::printf("failed: %s\n", what);
}

double largest(double mine) {
  MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return mine;
}

}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  int given = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
  const std::string mode = argc > 2 ? argv[1] : "";
  if (mode == "--die") {
    train_and_die(argv[2]);
  } else if (mode == "--die-in-scan") {
    scan_and_die(argv[2]);
  } else if (mode == "--go-on") {
    go_on_training(argv[2]);
  } else {
    check_sums();
    check_table();
    check_delta_rules();
    check_low_rank_rules();
    check_training();
    check_layers();
    check_cost();
    check_complex_step();
    check_bytes(fw::mpi::Ranks(MPI_COMM_WORLD));
    check_errors(fw::mpi::Ranks(MPI_COMM_WORLD));
    check_shapes(fw::mpi::Ranks(MPI_COMM_WORLD));
    check_shapes_of_sums(fw::mpi::Ranks(MPI_COMM_WORLD));
  }
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
