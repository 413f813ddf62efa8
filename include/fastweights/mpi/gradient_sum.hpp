#pragma once

#include <array>
#include <cstring>
#include <fastweights/layers/parameters.hpp>
#include <fastweights/mpi/states.hpp>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI::mpi {

/// The order in which a sum over ranks adds them.
enum class SummationOrder {
  ranks,  ///< the first rank first: the bits depend neither on the MPI library nor on the network
  any     ///< the library's, by MPI_Iallreduce: the bits may depend on both
};
using Order [[deprecated("its name is SummationOrder")]] = SummationOrder;

/// Sums arrays over the ranks while the program continues, such as the gradients of layers whose
/// backward pass has ended:
///
///     fw::mpi::GradientSum sum(comm);
///     model.backward(ids, trace, dlogits, gradient, sum.adder());
///     sum.finish();                       // `gradient` is now the sum over the ranks
///
/// All ranks add the same arrays in the same order. They are collected into messages of `least`
/// bytes. With N bytes in all a rank sends 2 N (P − 1) / P, in either order, and 16 bytes to agree
/// on the shapes of each message before it. MPI moves messages while the program is in one of its
/// functions: every add() gives it a moment.
///
/// If the shapes of ranks differ, or an array is neither float nor double, add() or finish() throws
/// std::invalid_argument on every rank. Nothing of these arrays is sent then. The sum is at its
/// end, and arrays that were added keep their values.
class GradientSum {
 public:
  static constexpr Index default_least = Index(1) << 20;  ///< 2^20 bytes

  /// Sums over the ranks of `comm`, in messages of `least` bytes or more.
  explicit GradientSum(MPI_Comm comm, SummationOrder order = SummationOrder::ranks,
                       Index least = default_least)
      : ranks_(comm), order_(order), least_(least) {}
  /// Abandons sums that finish() did not wait for.
  ~GradientSum() {
    if (begun_ > 0) detail::abandon(buckets_);
    if (agreement_->request != MPI_REQUEST_NULL) detail::abandon(agreement_);
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
  /// Adds any record.
  template <Record R> void add(R& record) { add(fw::detail::object(record)); }
  /// add() as a function, for the backward pass of a model.
  auto adder() {
    return [this](const fw::detail::Object& record) { add(record); };
  }

  /// Waits for the sums and stores them in the arrays. Throws on every rank if one of them has
  /// added other than `all` numbers, unless that is negative.
  void finish(Index all = -1) {
    if (all >= 0 && count_ != all)
      error_ = "mpi::GradientSum: has " + std::to_string(count_) + " numbers, expected " +
               std::to_string(all) + ", those of the gradient";
    close();
    agree();
    begin_to_agree("no more", 0);
    agree();
    if (order_ == SummationOrder::ranks)
      for (std::size_t i = 0; i < begun_; ++i) gather(buckets_[i]);
    for (std::size_t i = 0; i < begun_; ++i) store(buckets_[i]);
    reset();
  }

 private:
  struct Bucket {
    std::vector<fw::detail::Leaf> leaves;
    std::vector<std::byte> numbers, slices;
    std::size_t width = 0;  // of a number
    int slice = 0;          // numbers that a rank sums
    std::vector<MPI_Request> requests;
  };

  // Question on which the ranks agree.
  struct Agreement {
    std::string shapes;                // of the arrays of this rank
    std::size_t buckets = 0;           // to send then, 0 or 1
    std::array<long long, 2> least{};  // over the ranks, of the digest and its negative
    MPI_Request request = MPI_REQUEST_NULL;
  };

  static MPI_Datatype type_of(const Bucket& bucket) {
    return bucket.width == sizeof(float) ? MPI_FLOAT : MPI_DOUBLE;
  }

  void collect(const fw::detail::Leaf& leaf) {
    count_ += leaf.size();
    // Other ranks wait for this one: they learn of the error when all agree on the next shapes.
    if (leaf.scalar != fw::detail::ScalarKind::float32 &&
        leaf.scalar != fw::detail::ScalarKind::float64)
      error_ = "mpi::GradientSum: an array is neither float nor double";
    if (!error_.empty()) return;
    if (is_open_ && buckets_[filled_].width != leaf.width) close();
    if (!is_open_) open(leaf.width);
    Bucket& bucket = buckets_[filled_];
    bucket.leaves.push_back(leaf);
    const auto* data = static_cast<const std::byte*>(leaf.data);
    bucket.numbers.insert(bucket.numbers.end(), data,
                          data + static_cast<std::size_t>(leaf.size()) * leaf.width);
    if (std::ssize(bucket.numbers) >= least_) close();
  }
  // Buckets keep their storage for the next sum.
  void open(std::size_t width) {
    if (filled_ == buckets_.size()) buckets_.emplace_back();
    buckets_[filled_].leaves.clear();
    buckets_[filled_].numbers.clear();
    buckets_[filled_].width = width;
    is_open_ = true;
  }
  void reset() {
    begun_ = filled_ = 0;
    count_ = 0;
    is_open_ = false;
    error_.clear();
  }

  // Sends the bucket before, on which the ranks have had time to agree, and begins to agree on the
  // open one. All ranks call MPI in this order, as collective calls need.
  void close() {
    if (!is_open_) return;
    agree();
    is_open_ = false;
    begin_to_agree(shapes_of(buckets_[filled_++]), 1);
  }

  static std::string shapes_of(const Bucket& bucket) {
    std::string text;
    for (const fw::detail::Leaf& leaf : bucket.leaves)
      text += (text.empty() ? "" : ", ") + std::to_string(leaf.rows) + "x" +
              std::to_string(leaf.cols) + " of " + std::to_string(leaf.width) + " bytes";
    return text;
  }

  // `buckets`: how many will be sent when the ranks have agreed, 0 or 1.
  void begin_to_agree(const std::string& shapes, std::size_t buckets) {
    Agreement& mine = *agreement_;
    mine.shapes = shapes;
    mine.buckets = buckets;
    const long long digest = !error_.empty() ? -1 : detail::digest(shapes);
    mine.least = {digest, -digest};
    detail::check(MPI_Iallreduce(MPI_IN_PLACE, mine.least.data(), 2, MPI_LONG_LONG, MPI_MIN,
                                 ranks_.comm(), &mine.request),
                  "MPI_Iallreduce");
  }
  // Waits for what has begun, and sends its bucket.
  void agree() {
    Agreement& mine = *agreement_;
    if (mine.request == MPI_REQUEST_NULL) return;
    detail::check(MPI_Wait(&mine.request, MPI_STATUS_IGNORE), "MPI_Wait");
    if (mine.least[0] < 0 || mine.least[0] != -mine.least[1]) fail();
    if (mine.buckets == 1) begin(buckets_[begun_++]);
  }
  // On all ranks, so that what they have begun ends.
  [[noreturn]] void fail() {
    for (std::size_t i = 0; i < begun_; ++i) detail::ended(buckets_[i].requests, true);
    const std::string mine = error_;
    reset();
    if (!mine.empty()) fw::detail::throw_invalid({mine});
    detail::fail_to_agree("mpi::GradientSum", "the arrays", agreement_->shapes);
  }

  void begin(Bucket& bucket) {
    const std::size_t count = bucket.numbers.size() / bucket.width,
                      size = static_cast<std::size_t>(ranks_.size());
    const std::size_t slice = (count + size - 1) / size;
    // MPI counts in int.
    if ((order_ == SummationOrder::any ? slice * size : slice) >
        static_cast<std::size_t>(std::numeric_limits<int>::max()))
      fw::detail::throw_invalid(
          {"mpi::GradientSum: ", std::to_string(count), " numbers are too many for one message"});
    bucket.slice = static_cast<int>(slice);
    bucket.numbers.resize(slice * size * bucket.width);
    bucket.slices.resize(bucket.numbers.size());
    bucket.requests.assign(1, MPI_REQUEST_NULL);
    const MPI_Datatype type = type_of(bucket);
    if (order_ == SummationOrder::any)
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
    const std::byte* next = (order_ == SummationOrder::any ? bucket.slices : bucket.numbers).data();
    for (const fw::detail::Leaf& leaf : bucket.leaves) {
      const std::size_t bytes = static_cast<std::size_t>(leaf.size()) * leaf.width;
      std::memcpy(leaf.data, next, bytes);
      next += bytes;
    }
  }

  Ranks ranks_;
  SummationOrder order_;
  Index least_;
  std::vector<Bucket> buckets_;
  std::unique_ptr<Agreement> agreement_ = std::make_unique<Agreement>();
  Index count_ = 0;
  std::size_t begun_ = 0;   // the first ones are being summed
  std::size_t filled_ = 0;  // the ranks agree on the next one, if there is one more than begun_
  bool is_open_ = false;    // and the one after these is being filled
  std::string error_;       // of this rank, not known to the others yet
};

}  // namespace fw::mpi
