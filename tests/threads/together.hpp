#pragma once

#include <Eigen/Core>
#include <cstdio>
#include <fastweights/math/random.hpp>
#include <thread>
#include <vector>

/// Functions shared by the files of this folder, and the checks that each file implements.

using Eigen::MatrixXf;
using Eigen::Index;

inline int failures = 0;

void check_rules();
void check_continuous_memory();
void check_layers();
void check_files();
void check_exchange();

constexpr int thread_count = 8;

/// Calls f(0) … f(thread_count − 1), each in its own thread.
template <class F> void together(const F& f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; ++i) threads.emplace_back([&f, i] { f(i); });
  for (auto& thread : threads) thread.join();
}

/// `run(i)` returns what thread i computes; all must be equal to what one thread alone computes.
template <class F> void check_same(const char* what, const F& run) {
  std::vector<MatrixXf> results(thread_count);
  together([&](int i) { results[static_cast<std::size_t>(i)] = run(i); });
  const MatrixXf alone = run(0);
  int differ = alone.allFinite() ? 0 : 1;
  for (const MatrixXf& result : results) differ += result == alone ? 0 : 1;
  std::printf("%-72s %d of %d threads differ\n", what, differ, thread_count);
  failures += differ;
}

inline MatrixXf random_matrix(Index rows, Index columns, unsigned seed) {
  fw::Random random(seed);
  MatrixXf m(rows, columns);
  random.fill(m);
  return m;
}
