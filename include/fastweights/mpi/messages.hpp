#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/mpi/states.hpp>
#include <functional>
#include <list>
#include <type_traits>
#include <utility>

/// \file
/// Messages that are sent and received while the program continues.

namespace fw::inline FASTWEIGHTS_ABI::mpi::detail {

// Messages that are under way, and what to do with those that have come.
class Messages {
 public:
  explicit Messages(const Ranks& ranks) : ranks_(ranks) {}
  ~Messages() {
    if (!requests_.empty()) abandon(buffers_);
  }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  // The bytes must stay until wait().
  void send(const std::byte* from, Index bytes, int to) {
    add(ranks_.begin_to_send(from, bytes, to));
  }
  void receive(std::byte* into, Index bytes, int from) {
    add(ranks_.begin_to_receive(into, bytes, from));
  }
  // Bytes that stay until this ends.
  std::vector<std::byte>& buffer(Index bytes = 0) {
    return buffers_.emplace_back(static_cast<std::size_t>(bytes));
  }
  template <class F> void then(F f) { then_.push_back(std::move(f)); }

  void wait() {
    ended(requests_, true);
    requests_.clear();
    for (const auto& f : then_) f();
    then_.clear();
  }

 private:
  void add(const std::vector<MPI_Request>& begun) {
    requests_.insert(requests_.end(), begun.begin(), begun.end());
  }

  const Ranks& ranks_;
  std::vector<MPI_Request> requests_;
  std::list<std::vector<std::byte>> buffers_;
  std::vector<std::function<void()>> then_;
};

template <class View> Index view_bytes(const View& view) {
  return view.size() * static_cast<Index>(sizeof(typename View::Scalar));
}
template <class View> bool is_contiguous(const View& view) {
  return view.colStride() == view.rows() || view.cols() <= 1;
}

// The members of a record of views, from the caller's memory if it is contiguous.
template <class R> void send_views(Messages& messages, const R& views, int to) {
  for_each_member(
      [&]<class View>(std::string_view, const View& view) {
        using S = std::remove_const_t<typename View::Scalar>;
        const Index bytes = view_bytes(view);
        if (is_contiguous(view))
          return messages.send(reinterpret_cast<const std::byte*>(view.data()), bytes, to);
        std::byte* const copy = messages.buffer(bytes).data();
        Eigen::Map<Eigen::MatrixX<S>>(reinterpret_cast<S*>(copy), view.rows(), view.cols()) = view;
        messages.send(copy, bytes, to);
      },
      views);
}
template <class R> void receive_views(Messages& messages, const R& views, int from) {
  for_each_member(
      [&]<class View>(std::string_view, const View& given) {
        using S = typename View::Scalar;
        View view = given;
        const Index bytes = view_bytes(view);
        if (is_contiguous(view))
          return messages.receive(reinterpret_cast<std::byte*>(view.data()), bytes, from);
        std::byte* const copy = messages.buffer(bytes).data();
        messages.receive(copy, bytes, from);
        messages.then([view, copy]() mutable {
          view = Eigen::Map<const Eigen::MatrixX<S>>(reinterpret_cast<const S*>(copy), view.rows(),
                                                     view.cols());
        });
      },
      views);
}
inline void send_record(Messages& messages, const Object& record, int to) {
  std::vector<std::byte>& copy = messages.buffer();
  store(record, copy);
  messages.send(copy.data(), std::ssize(copy), to);
}
inline void receive_record(Messages& messages, const Object& record, int from) {
  std::vector<std::byte>& copy = messages.buffer(bytes_of(record));
  messages.receive(copy.data(), std::ssize(copy), from);
  messages.then([record, &copy] { load(record, copy.data()); });
}

}  // namespace fw::mpi::detail
