#pragma once

#include <atomic>
#include <fastweights/continuous/ridge.hpp>
#include <fastweights/core/threads.hpp>
#include <memory>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// A cache of a memory's ridge operators, by chunk length and contraction. It is a list that only
/// grows, so that a lookup takes no lock. Two threads that need the same new operator at the same
/// time both compute it. Copies of a memory share the cache. A full cache computes missing
/// operators at every call; such a result is valid until the next call in the same thread.
template <class S> class OperatorCache {
 public:
  static constexpr int capacity = 128;

  struct Key {
    Index new_tokens = 0;
    double tau = 0;  ///< 0 for the first write
    bool operator==(const Key&) const = default;
  };

  /// The operator of `key`; computes it by make(key) if it is missing.
  template <class Make> const RidgeOperator<S>& get(const Key& key, const Make& make) const {
    Node* const newest = list_->head.load(std::memory_order_acquire);
    if (const Node* node = find(newest, key)) return node->value;
    if (newest != nullptr && newest->number >= capacity) {
      FASTWEIGHTS_THREAD_LOCAL RidgeOperator<S> last;
      return last = make(key);
    }
    return insert(std::make_unique<Node>(Node{key, make(key), nullptr, 1}));
  }

  /// Caches the operator of `key`, even in a full cache.
  template <class Make> void add(const Key& key, const Make& make) const {
    if (find(list_->head.load(std::memory_order_acquire), key) == nullptr)
      insert(std::make_unique<Node>(Node{key, make(key), nullptr, 1}));
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
      while (node) node = std::move(node->next);  // avoids recursive destructors
    }
  };

  static const Node* find(const Node* newest, const Key& key) {
    for (const Node* node = newest; node != nullptr; node = node->next.get())
      if (node->key == key) return node;
    return nullptr;
  }

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
