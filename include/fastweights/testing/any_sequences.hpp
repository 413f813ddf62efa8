#pragma once

#include <fastweights/any_memory/any_memory.hpp>
#include <fastweights/testing/sequences.hpp>

/// \file
/// Random sequences and gradients of a memory that is chosen at run time.

namespace fw::inline FASTWEIGHTS_ABI::testing {

/// The matrices of one record of a sequence, in the order of the memory's signature.
template <class S> class AnyRecord {
 public:
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;

  /// No members.
  AnyRecord() = default;
  /// `steps` tokens of these members, every entry `fill`.
  AnyRecord(std::span<const SignatureMember> members, Index steps, S fill)
      : members_(members.begin(), members.end()) {
    for (const SignatureMember& m : members)
      matrices.push_back(Matrix::Constant(m.rows, m.width * steps, fill));
  }

  /// Views of all tokens.
  template <class T = const S> std::vector<AnyView<T>> views() { return part<T>(0, -1); }
  /// Views of `count` tokens from token `first` on; a negative count means all that are left.
  template <class T = const S> std::vector<AnyView<T>> part(Index first, Index count) {
    std::vector<AnyView<T>> all;
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      const Index begin = std::min(first * members_[i].width, matrices[i].cols());
      const Index left = matrices[i].cols() - begin;
      all.push_back(
          AnyView<T>(matrices[i])
              .columns(begin, count < 0 ? left : std::min(left, count * members_[i].width)));
    }
    return all;
  }
  /// The matrix of a member. Throws std::invalid_argument if there is none of that name.
  Matrix& operator[](std::string_view name) {
    for (std::size_t i = 0; i < members_.size(); ++i)
      if (members_[i].name == name) return matrices[i];
    fw::detail::throw_invalid({"this record has no member ", name});
  }
  /// The matrix, to look at.
  const Matrix& operator[](std::string_view name) const {
    return (*const_cast<AnyRecord*>(this))[name];
  }
  /// As a record whose members are known at run time: see core/leaves.hpp.
  std::size_t part_count() const { return matrices.size(); }
  /// Member i.
  fw::detail::Object part(std::size_t i) {
    return fw::detail::object(matrices[i], members_[i].name);
  }
  /// The members, as the signature has them.
  std::span<const SignatureMember> members() const { return members_; }

  /// The numbers of another scalar.
  template <class T> AnyRecord<T> cast() const {
    AnyRecord<T> to(members_, 0, T(0));
    for (std::size_t i = 0; i < matrices.size(); ++i)
      to.matrices[i] = matrices[i].template cast<T>();
    return to;
  }

  std::vector<Matrix> matrices;  ///< one a member

 private:
  std::vector<SignatureMember> members_;
};

/// Inputs, queries and outputs over a number of tokens.
template <class S> struct AnySequences {
  AnyRecord<S> inputs;   ///< what is written
  AnyRecord<S> queries;  ///< what is read with
  AnyRecord<S> outputs;  ///< NaN until a scan writes them

  /// The numbers of another scalar.
  template <class T> AnySequences<T> cast() const {
    return {inputs.template cast<T>(), queries.template cast<T>(), outputs.template cast<T>()};
  }
};

/// As random_sequences of a memory whose type is known, with the same numbers for the same seed.
template <class S>
AnySequences<S> random_sequences(const AnyMemory<S>& m, Index steps, Random& random,
                                 bool positive = false) {
  const auto drawn = [&](std::span<const SignatureMember> members) {
    AnyRecord<S> record(members, steps, S(0));
    for (std::size_t i = 0; i < members.size(); ++i)
      for (Index entry = 0; entry < record.matrices[i].size(); ++entry)
        record.matrices[i].data()[entry] =
            static_cast<S>(detail::draw(members[i].role, members[i].rows, random, positive));
    return record;
  };
  AnySequences<S> all;
  all.inputs = drawn(m.written());
  all.queries = drawn(m.read_with());
  detail::share_members(fw::detail::object(all.inputs), fw::detail::object(all.queries));
  all.outputs = AnyRecord<S>(m.given(), steps, S(std::numeric_limits<double>::quiet_NaN()));
  return all;
}

/// Scans all tokens of the sequences.
template <class S> void scan(const AnyMemory<S>& m, AnyState<S>& state, AnySequences<S>& all) {
  m.scan(state, all.inputs.views(), all.queries.views(), all.outputs.template views<S>());
}

}  // namespace fw::testing
