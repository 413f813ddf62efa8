#pragma once

/// \file
/// fastweights in one header: memories, the algorithms that run them over sequences, layers and
/// training. It needs Eigen and the standard library. Single headers compile faster.
///
/// Headers that most programs do not need are separate: fastweights/io/ (safetensors files),
/// layers/ for the published layers, models/ (published models), onnx/, mpi/, testing/ (gradient
/// check, random sequences, timing) and memories/adaptors/amx_scan.hpp (the delta rule with Intel's
/// matrix unit).

// Core: the sizes, inputs, outputs and state of a memory.
#include <fastweights/core/check.hpp>
#include <fastweights/core/decay_signatures.hpp>
#include <fastweights/core/finite.hpp>
#include <fastweights/core/member_storage.hpp>
#include <fastweights/core/memory.hpp>
#include <fastweights/core/owned.hpp>
#include <fastweights/core/record.hpp>
#include <fastweights/core/recurrent_signatures.hpp>
#include <fastweights/core/scratch.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/core/snapshot.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/core/strict_math.hpp>
#include <fastweights/core/version.hpp>
#include <fastweights/core/views.hpp>

// Numerical functions: activations, normal densities, products, random numbers; loops in threads.
#include <fastweights/math/activations.hpp>
#include <fastweights/math/elementwise.hpp>
#include <fastweights/math/gelu.hpp>
#include <fastweights/math/normal.hpp>
#include <fastweights/math/parallel_for.hpp>
#include <fastweights/math/products.hpp>
#include <fastweights/math/random.hpp>

// Algorithms for every memory: one token, a sequence, gradients.
#include <fastweights/algorithms/backward.hpp>
#include <fastweights/algorithms/checked.hpp>
#include <fastweights/algorithms/parallel_scan.hpp>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/algorithms/streams.hpp>

// Continuous signals: bases, densities, ridge regression, attention over coefficients.
#include <fastweights/continuous/attend.hpp>
#include <fastweights/continuous/basis.hpp>
#include <fastweights/continuous/components.hpp>
#include <fastweights/continuous/contraction.hpp>
#include <fastweights/continuous/density.hpp>
#include <fastweights/continuous/gibbs_density.hpp>
#include <fastweights/continuous/moments.hpp>
#include <fastweights/continuous/operator_cache.hpp>
#include <fastweights/continuous/ridge.hpp>
#include <fastweights/continuous/shapes.hpp>
#include <fastweights/continuous/softmax_density.hpp>
#include <fastweights/continuous/sticky.hpp>

// Memories.
#include <fastweights/memories/adaptors/cached_segments.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>
#include <fastweights/memories/attention/delta_former.hpp>
#include <fastweights/memories/attention/forgetting_attention.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/attention/parallax.hpp>
#include <fastweights/memories/attention/path_attention.hpp>
#include <fastweights/memories/attention/stick_breaking_attention.hpp>
#include <fastweights/memories/recurrent/delta_delta_net.hpp>
#include <fastweights/memories/recurrent/delta_lstm.hpp>
#include <fastweights/memories/recurrent/delta_mlp.hpp>
#include <fastweights/memories/recurrent/delta_rnn.hpp>
#include <fastweights/memories/recurrent/recurrent_delta_net.hpp>
#include <fastweights/memories/recurrent/self_referential_matrix.hpp>
#include <fastweights/memories/rules/atlas_memory.hpp>
#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/cyclic_flow_attention.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/efla.hpp>
#include <fastweights/memories/rules/erase_then_delta.hpp>
#include <fastweights/memories/rules/fast_weight_memory.hpp>
#include <fastweights/memories/rules/fine_grained_delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/gated_oja_rule.hpp>
#include <fastweights/memories/rules/gated_slot_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/hgrn.hpp>
#include <fastweights/memories/rules/kalma_memory.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/log_linear_attention.hpp>
#include <fastweights/memories/rules/longhorn.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>
#include <fastweights/memories/rules/mamba3.hpp>
#include <fastweights/memories/rules/mamba3_mimo.hpp>
#include <fastweights/memories/rules/matrix_rule.hpp>
#include <fastweights/memories/rules/mesa_memory.hpp>
#include <fastweights/memories/rules/miras_memory.hpp>
#include <fastweights/memories/rules/mlstm.hpp>
#include <fastweights/memories/rules/momentum_delta_rule.hpp>
#include <fastweights/memories/rules/momentum_rule.hpp>
#include <fastweights/memories/rules/normalised_gated_attention.hpp>
#include <fastweights/memories/rules/normaliser.hpp>
#include <fastweights/memories/rules/omega_memory.hpp>
#include <fastweights/memories/rules/preconditioned_delta_rule.hpp>
#include <fastweights/memories/rules/programmer1991.hpp>
#include <fastweights/memories/rules/q_delta.hpp>
#include <fastweights/memories/rules/recursive_least_squares.hpp>
#include <fastweights/memories/rules/rwkv4.hpp>
#include <fastweights/memories/rules/rwkv6.hpp>
#include <fastweights/memories/rules/selective_scan.hpp>
#include <fastweights/memories/rules/sums.hpp>
#include <fastweights/memories/rules/test_time_training.hpp>
#include <fastweights/memories/rules/titans_learner.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

// Feature maps of keys and queries.
#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/favor_plus.hpp>
#include <fastweights/feature_maps/feature_map.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/feature_maps/relu.hpp>
#include <fastweights/feature_maps/softmax.hpp>
#include <fastweights/feature_maps/symmetric_power.hpp>
#include <fastweights/feature_maps/tanh.hpp>
#include <fastweights/feature_maps/taylor.hpp>

// Layers: networks of operations, slow weights around memories.
#include <fastweights/layers/attention/kl_regulariser.hpp>
#include <fastweights/layers/attention/long_term_layer.hpp>
#include <fastweights/layers/attention/reconstruction_loss.hpp>
#include <fastweights/layers/attention/smoothing_gate.hpp>
#include <fastweights/layers/attention/strided_conv.hpp>
#include <fastweights/layers/fast_weight_layer.hpp>
#include <fastweights/layers/fast_weights.hpp>
#include <fastweights/layers/feed_forward.hpp>
#include <fastweights/layers/language_model.hpp>
#include <fastweights/layers/layer.hpp>
#include <fastweights/layers/parameters.hpp>

// Training.
#include <fastweights/training/adamw.hpp>
#include <fastweights/training/losses.hpp>
#include <fastweights/training/schedule.hpp>
#include <fastweights/training/trainer.hpp>

// Memories behind a run-time face that the library has are not compiled again.
#ifdef FASTWEIGHTS_COMPILED_MEMORIES
#include <fastweights/any_memory/table/all.hpp>
#endif
