#pragma once

#include <atomic>
#include <fastweights/continuous/ridge.hpp>
#include <memory>

namespace fw::detail {

/// The operators of one memory by chunk length and contraction. A list that only grows: finding one
/// takes no lock, and two threads that need the same new one at once both compute it. Copies of a
/// memory share the list. Beyond `most` operators, one is computed anew whenever it is asked for
/// and is valid until the same thread asks again.
template <class S> class OperatorCache {
 public:
  static constexpr int most = 128;

  struct Key {
    Index fresh = 0;
    double tau = 0;  ///< 0: there is no past
    bool operator==(const Key&) const = default;
  };

  /// The operator of `key`, by make(key) if it is new.
  template <class Make> const RidgeOperator<S>& get(const Key& key, const Make& make) const {
    Node* const newest = list_->head.load(std::memory_order_acquire);
    for (const Node* node = newest; node != nullptr; node = node->next.get())
      if (node->key == key) return node->value;
    if (newest != nullptr && newest->number >= most) {
      thread_local RidgeOperator<S> last;
      return last = make(key);
    }
    return insert(std::make_unique<Node>(Node{key, make(key), nullptr, 1}));
  }

 private:
  struct Node {
    Key key;
    RidgeOperator<S> value;
    std::unique_ptr<Node> next;  // older
    int number;
  };
  struct List {
    std::atomic<Node*> head{nullptr};
    ~List() {
      std::unique_ptr<Node> node(head.load());
      while (node) node = std::move(node->next);  // not by recursion
    }
  };

  const RidgeOperator<S>& insert(std::unique_ptr<Node> node) const {
    Node* head = list_->head.load(std::memory_order_acquire);
    do {
      static_cast<void>(node->next.release());
      node->next.reset(head);
      node->number = head != nullptr ? head->number + 1 : 1;
    } while (!list_->head.compare_exchange_weak(head, node.get(), std::memory_order_acq_rel));
    return node.release()->value;
  }

  std::shared_ptr<List> list_ = std::make_shared<List>();
};

}  // namespace fw::detail
