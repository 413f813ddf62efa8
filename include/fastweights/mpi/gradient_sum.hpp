#pragma once

#include <cstring>
#include <fastweights/layers/parameters.hpp>
#include <fastweights/mpi/states.hpp>
#include <limits>

namespace fw::inline FASTWEIGHTS_ABI::mpi {

/// The order in which a sum over ranks adds them.
enum class Order {
  ranks,  ///< the first rank first: the bits depend neither on the MPI library nor on the network
  any     ///< the library's, by MPI_Iallreduce: the bits may depend on both
};

/// Sums arrays over the ranks while the program goes on, such as the gradients of layers whose
/// backward pass has ended:
///
///     fw::mpi::GradientSum sum(comm);
///     model.backward(ids, trace, dlogits, gradient, sum.adder());
///     sum.finish();                       // `gradient` is now the sum over the ranks
///
/// All ranks add the same arrays in the same order. They are collected into messages of `least`
/// bytes. With N bytes in all a rank sends 2 N (P − 1) / P, in either order. MPI moves messages
/// while the program is in one of its functions: every add() gives it a moment.
class GradientSum {
 public:
  static constexpr Index default_least = Index(1) << 20;  ///< 2^20 bytes

  /// Sums over the ranks of `comm`, in messages of `least` bytes or more.
  explicit GradientSum(MPI_Comm comm, Order order = Order::ranks, Index least = default_least)
      : ranks_(comm), order_(order), least_(least) {}
  /// Abandons sums that finish() did not wait for.
  ~GradientSum() {
    if (begun_ > 0) detail::abandon(buckets_);
  }
  /// It has messages under way, so it is not copied.
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

  /// The communicator of the ranks.
  MPI_Comm comm() const { return ranks_.comm(); }
  /// Numbers added since finish().
  Index count() const { return count_; }

  /// Begins to sum the arrays of a record, of float or double. They must stay, and nobody may write
  /// them, until finish().
  void add(const fw::detail::Object& record) {
    fw::detail::visit_leaves(&record, 1, [&](const fw::detail::Leaf* leaf, const auto&) {
      if (leaf->is_array && leaf->size() > 0) collect(*leaf);
    });
    for (std::size_t i = 0; i < begun_; ++i) detail::ended(buckets_[i].requests, false);
  }
  /// The same for any record.
  template <Record R> void add(R& record) { add(fw::detail::object(record)); }
  /// add() as a function, for the backward pass of a model.
  auto adder() {
    return [this](const fw::detail::Object& record) { add(record); };
  }

  /// Waits for the sums and stores them in the arrays.
  void finish() {
    begin_last();
    if (order_ == Order::ranks)
      for (std::size_t i = 0; i < begun_; ++i) gather(buckets_[i]);
    for (std::size_t i = 0; i < begun_; ++i) store(buckets_[i]);
    begun_ = 0;
    count_ = 0;
  }

 private:
  struct Bucket {
    std::vector<fw::detail::Leaf> leaves;
    std::vector<std::byte> numbers, slices;
    std::size_t width = 0;  // of a number
    int slice = 0;          // numbers that a rank sums
    std::vector<MPI_Request> requests;
  };

  static MPI_Datatype type_of(const Bucket& bucket) {
    return bucket.width == sizeof(float) ? MPI_FLOAT : MPI_DOUBLE;
  }

  void collect(const fw::detail::Leaf& leaf) {
    if (leaf.scalar != fw::detail::ScalarKind::float32 &&
        leaf.scalar != fw::detail::ScalarKind::float64)
      fw::detail::throw_invalid({"mpi::GradientSum: an array is neither float nor double"});
    if (is_open_ && buckets_[begun_].width != leaf.width) begin_last();
    if (!is_open_) open(leaf.width);
    Bucket& bucket = buckets_[begun_];
    count_ += leaf.size();
    bucket.leaves.push_back(leaf);
    const auto* data = static_cast<const std::byte*>(leaf.data);
    bucket.numbers.insert(bucket.numbers.end(), data,
                          data + static_cast<std::size_t>(leaf.size()) * leaf.width);
    if (std::ssize(bucket.numbers) >= least_) begin_last();
  }
  // Buckets keep their storage for the next sum.
  void open(std::size_t width) {
    if (begun_ == buckets_.size()) buckets_.emplace_back();
    buckets_[begun_].leaves.clear();
    buckets_[begun_].numbers.clear();
    buckets_[begun_].width = width;
    is_open_ = true;
  }

  void begin_last() {
    if (!is_open_) return;
    Bucket& bucket = buckets_[begun_++];
    is_open_ = false;
    const std::size_t count = bucket.numbers.size() / bucket.width,
                      size = static_cast<std::size_t>(ranks_.size());
    const std::size_t slice = (count + size - 1) / size;
    // MPI counts in int.
    if ((order_ == Order::any ? slice * size : slice) >
        static_cast<std::size_t>(std::numeric_limits<int>::max()))
      fw::detail::throw_invalid(
          {"mpi::GradientSum: ", std::to_string(count), " numbers are too many for one message"});
    bucket.slice = static_cast<int>(slice);
    bucket.numbers.resize(slice * size * bucket.width);
    bucket.slices.resize(bucket.numbers.size());
    bucket.requests.assign(1, MPI_REQUEST_NULL);
    const MPI_Datatype type = type_of(bucket);
    if (order_ == Order::any)
      detail::check(
          MPI_Iallreduce(bucket.numbers.data(), bucket.slices.data(), bucket.slice * ranks_.size(),
                         type, MPI_SUM, ranks_.comm(), bucket.requests.data()),
          "MPI_Iallreduce");
    else
      detail::check(MPI_Ialltoall(bucket.numbers.data(), bucket.slice, type, bucket.slices.data(),
                                  bucket.slice, type, ranks_.comm(), bucket.requests.data()),
                    "MPI_Ialltoall");
  }

  // Adds the slices of the ranks in their order, and begins to gather those of all.
  void gather(Bucket& bucket) {
    detail::ended(bucket.requests, true);
    if (bucket.width == sizeof(float))
      add_slices<float>(bucket);
    else
      add_slices<double>(bucket);
    detail::check(
        MPI_Iallgather(bucket.slices.data(), bucket.slice, type_of(bucket), bucket.numbers.data(),
                       bucket.slice, type_of(bucket), ranks_.comm(), bucket.requests.data()),
        "MPI_Iallgather");
  }
  template <class S> void add_slices(Bucket& bucket) {
    using Array = Eigen::Map<Eigen::Array<S, Eigen::Dynamic, 1>>;
    const auto part = [&](Index i) {
      return Array(reinterpret_cast<S*>(bucket.slices.data()) + i * bucket.slice, bucket.slice);
    };
    for (Index i = 1; i < ranks_.size(); ++i) part(0) += part(i);
  }

  void store(Bucket& bucket) {
    detail::ended(bucket.requests, true);
    const std::byte* next = (order_ == Order::any ? bucket.slices : bucket.numbers).data();
    for (const fw::detail::Leaf& leaf : bucket.leaves) {
      const std::size_t bytes = static_cast<std::size_t>(leaf.size()) * leaf.width;
      std::memcpy(leaf.data, next, bytes);
      next += bytes;
    }
  }

  Ranks ranks_;
  Order order_;
  Index least_;
  std::vector<Bucket> buckets_;
  Index count_ = 0;
  std::size_t begun_ = 0;  // the first ones are being summed
  bool is_open_ = false;   // and the next one is being filled
};

}  // namespace fw::mpi
