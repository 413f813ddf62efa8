#include "memory_class.hpp"

/// \file
/// Equation and source of each memory, in the order of the table. Inputs and their sizes come from
/// the table. In equations W on the right is that before the token, ' is the new one where both are
/// needed, and * between vectors is by entries.

namespace fw::python {

namespace {

struct Text {
  std::string_view name, text;
};

constexpr Text texts[] = {
    // sums
    {"LinearAttention", R"(Linear attention, the sum rule: adds the outer product of value and key.

    W = W + v k^T      y = W q

W is d_v x d_k. Feature maps are the caller's. Katharopoulos et al. 2020, arXiv 2006.16236.)"},
    {"CompensatedLinearAttention",
     R"(Linear attention whose matrix is a compensated sum: no write is lost beside a large W.

    W = W + v k^T      y = W q

Katharopoulos et al. 2020, arXiv 2006.16236.)"},
    {"NormalisedLinearAttention",
     R"(Linear attention divided by the sum of its weights, with compensated sums for long streams.

    W = W + v k^T      z = z + k      y = W q / (z.q + epsilon)

Keys and queries should be positive (a feature map of the caller). Katharopoulos et al. 2020,
arXiv 2006.16236, eq. 18-20.)"},
    {"HebbianMemory",
     R"(Hebbian memory with a constant decay, the fast weights of Ba et al.; retention with rate 1.

    W = decay W + rate v k^T      y = W q

Ba et al. 2016, arXiv 1610.06258, eq. 1.)"},
    {"Programmer1991",
     R"(The fast weight programmer of 1991: an outer product is added inside an activation, here tanh.

    W = tanh(W + v k^T)      y = W q

Schmidhuber 1991, TR FKI-147-91; as restated in arXiv 2102.11174, eq. 1-3.)"},
    {"SigmoidProgrammer1991", R"(Programmer1991 with the logistic sigmoid.

    W = sigmoid(W + v k^T)      y = W q)"},
    {"ReluProgrammer1991", R"(Programmer1991 with the rectifier.

    W = max(W + v k^T, 0)      y = W q)"},
    {"IdentityProgrammer1991", R"(Programmer1991 without an activation, which is linear attention.

    W = W + v k^T      y = W q)"},
    // deltas
    {"DeltaRule",
     R"(The delta rule: writes the difference between the value and what the key retrieves.

    u = beta (v - W k)      W = W + u k^T      y = W q

beta is in [0, 2]. Stable for beta |k|^2 <= 2: normalise the keys. Schlag, Irie, Schmidhuber 2021,
arXiv 2102.11174, eq. 23-25.)"},
    {"VectorDeltaRule", R"(The delta rule with a write strength for every value row.

    u = beta * (v - W k)      W = W + u k^T      y = W q

beta is in [0, 2]. Stable for beta |k|^2 <= 2: normalise the keys.)"},
    {"NormalisedDeltaRule",
     R"(The delta rule with the attention normaliser, with w = z.k (1 if it is exactly 0), g = 1 / (w + epsilon):

    u = beta w g (v - g W k)      W = W + u k^T      z = z + k      y = W q / (z.q + epsilon)

Keys and queries should be positive. Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174, section 4.2.)"},
    {"NormalisedVectorDeltaRule",
     R"(NormalisedDeltaRule with a write strength for every value row.

    u = w g beta * (v - g W k)    W = W + u k^T    z = z + k    y = W q / (z.q + epsilon)

w = z.k (1 if it is exactly 0), g = 1 / (w + epsilon). Keys and queries should be positive.)"},
    // gated
    {"GatedLinearAttention",
     R"(Gated linear attention: the sum rule with a decay per key row and token.

    W = W diag(decay) + v k^T      y = W q

decay is in (0, 1], the exponential of the log decay g of other code. Yang et al. 2023,
arXiv 2312.06635.)"},
    {"SimpleGatedLinearAttention",
     R"(Simple gated linear attention, the recurrence of Mamba-2: one decay per token.

    W = decay W + v k^T      y = W q

decay is in (0, 1]. Dao & Gu 2024, arXiv 2405.21060.)"},
    {"NormalisedGatedAttention",
     R"(Gated linear attention divided by the sum of its weights, which decays as W does.

    W = decay W + v k^T      z = decay z + k      y = W q / (z.q + epsilon)

Keys and queries should be positive. arXiv 2507.04239.)"},
    {"NormalisedVectorGatedAttention",
     R"(NormalisedGatedAttention with a decay per key row.

    W = W diag(decay) + v k^T      z = decay * z + k      y = W q / (z.q + epsilon)

Keys and queries should be positive.)"},
    {"Mlstm",
     R"(mLSTM, the matrix memory of xLSTM. W and n are stored divided by e^m, so that no exponential overflows.

    m' = max(log sigmoid(f) + m, i)      a = exp(log sigmoid(f) + m - m')      b = exp(i - m')
    W = a W + b v k^T      n = a n + b k      y = W q / (max(|n.q|, exp(-m')) + epsilon)

input_gate i and forget_gate f are before their activation. Divide the queries by sqrt(d_k) as the
paper does. Beck et al. 2024, arXiv 2405.04517, eq. 19-27.)"},
    // channels
    {"Hgrn", R"(The memory of HGRN, a vector that decays by entry. It has no query.

    h = decay * h + v      y = h

decay is in (0, 1]; HGRN writes v = (1 - decay) * c. Qin, Yang, Zhong 2023, arXiv 2311.04823.)"},
    {"Rwkv4",
     R"(The WKV memory of RWKV-4: for every channel a mean of all values, with weights that decay.

    y = (n + exp(u + k) * v) / (z + exp(u + k))      then n = exp(-w) * n + exp(k) * v, and z
    likewise with v = 1

n and z are stored divided by exp(m), so that no exponential overflows. state["slow.rate"] is w and
state["slow.bonus"] u. Peng et al. 2023, arXiv 2305.13048.)"},
    {"SelectiveScan",
     R"(The selective scan of Mamba: every entry of W has its own decay, from a step size and the weights A.

    s = softplus(step + step_bias)      W = exp(s A) * W + (s * v) k^T
    y = (W q + skip * v) * silu(gate)

A, skip and step_bias are weights of the state; A_ij is -j at first. Gu & Dao 2023, arXiv 2312.00752,
algorithm 2.)"},
    {"CyclicFlowAttention",
     R"(Cyclic flow attention: softmax attention over the positions of a ring, which tokens pass as they age.

    c = c + advance mod ring      a = beta f(-c)      K = decay K + a k^T      V = decay V + v a^T
    y = V R^T softmax(R K q)      R = readout F D(c)

ring is 2 frequencies - 1. f(r) has the cosines and sines of 2 pi n r / ring for all frequencies n, F
the rows f(0), f(1), ..., and D(c) turns them by c. state["slow.readout"] is the identity at first.
2026, arXiv 2609.36259.)"},
    // gated_deltas
    {"GatedDeltaRule",
     R"(The gated delta rule: the state decays, then the delta rule updates the value under the key.

    W = decay W      u = beta (v - W k)      W = W + u k^T      y = W q

beta is in [0, 2], decay in (0, 1], the exponential of the log decay g of other code. Stable for
beta |k|^2 <= 2: normalise the keys. Yang, Kautz, Hatamizadeh 2024, arXiv 2412.06464.)"},
    {"KimiDeltaAttention",
     R"(The gated delta rule with a decay per key row: Kimi delta attention.

    W = W diag(decay)      u = beta (v - W k)      W = W + u k^T      y = W q

beta is in [0, 2], decay in (0, 1]. Stable for beta |k|^2 <= 2: normalise the keys. Kimi Team 2025,
arXiv 2510.26692.)"},
    {"Rwkv6",
     R"(RWKV-6: gated linear attention that reads first. The token itself has a bonus u, a weight of the state.

    y = W q + v (u * k).q      W = W diag(decay) + v k^T

decay is in (0, 1]. Peng et al. 2024, arXiv 2404.05892.)"},
    // delta_family
    {"Comba",
     R"(Comba: a delta rule whose look-up key p differs from the write key and reads W before its decay.

    u = beta (v - W p)      W = decay W + u k^T      y = W q

p is `lookup`. Stable if p is a multiple of k and 0 <= beta k.p <= 2 decay. Hu et al. 2025,
arXiv 2506.02475.)"},
    {"GatedDeltaRule2",
     R"(The second gated delta rule: what is erased and what is written have strengths of their own.

    W = W diag(decay)      W = W + (write * v - W (erase * k)) k^T      y = W q

erase and write are in [0, 2], decay in (0, 1]. arXiv 2605.22791.)"},
    {"GatedDeltaProduct",
     R"(The gated DeltaProduct: the state decays, then two delta rules write one after the other.

    W = decay W      for each of the two k, v, beta: W = W + beta (v - W k) k^T      y = W q

beta is in [0, 2]. Stable for beta |k|^2 <= 2: normalise the keys. Siems et al. 2025,
arXiv 2502.10297.)"},
    {"GatedDeltaProduct1", "GatedDeltaProduct with one write a token: the gated delta rule."},
    {"GatedDeltaProduct3", "GatedDeltaProduct with three writes a token."},
    {"LowRankRule",
     R"(A transition that is diagonal plus low rank, the recurrence of RWKV-7: removal -kappa, replacement kappa * a.

    W = W diag(decay) + (W removal) replacement^T + v k^T      y = W q

Stable if diag(decay) + removal replacement^T does not grow. Peng et al. 2025, arXiv 2503.14456.)"},
    {"IdentityLowRankRule",
     R"(LowRankRule without a decay: IPLR, identity plus low rank.

    W = W + (W removal) replacement^T + v k^T      y = W q)"},
    // delta_rows
    {"PreconditionedDeltaRule",
     R"(The preconditioned gated delta rule: key rows that were written often get smaller updates.

    A = moment_decay A + moment_beta k * k      r = log(A + 1e-6) - log_scale
    p = 1.5^(-r / (1 + |r|)) * k      W = decay W      W = W + beta (v - W k) p^T      y = W q

log_scale is a weight of the state. Stable for beta |k|^2 <= 4/3. arXiv 2604.21100.)"},
    {"VectorPreconditionedDeltaRule",
     R"(PreconditionedDeltaRule with a decay per key row: preconditioned Kimi delta attention.)"},
    {"Efla",
     R"(Error-free linear attention: a delta rule with the strength of an exact flow, stable for any key.

    b = (1 - exp(-beta |k|^2)) / |k|^2      W = W + b (v - W k) k^T      y = W q

beta is at least 0. Lei et al. 2025, arXiv 2512.12602.)"},
    {"EraseThenDelta",
     R"(Erase, then delta: the state forgets under one key, then the delta rule writes under another.

    W = W diag(decay)      W = W - erase_strength W e e^T      W = W + beta (v - W k) k^T      y = W q

With erase_strength = 0 it is Kimi delta attention. Normalise both keys. arXiv 2606.26560.)"},
    {"ScalarEraseThenDelta", R"(EraseThenDelta with one decay per token.)"},
    {"FineGrainedDeltaRule",
     R"(The fine-grained gated delta rule: Kimi delta attention with a write strength for every channel.

    r = sqrt(beta)      W = W diag(decay)      W = W + (r * v - W (r * k)) (r * k)^T      y = W q

beta is at least 0. Stable for a sum of beta k^2 of at most 2. arXiv 2604.19021.)"},
    {"QDelta",
     R"(A gated delta rule whose error is read at a mix of the key and a probe, the query in the paper.

    W = decay W      W = W + beta (v - W (k + mix p)) k^T      y = W q

With mix = 0 it is the gated delta rule. arXiv 2606.08804.)"},
    {"GatedOjaRule",
     R"(The gated Oja rule: a delta rule whose values look up keys, while value rows decay.

    W = diag(decay) W      W = W + beta v (k - W^T v)^T      y = W q

beta is in [0, 2]. Stable for beta |v|^2 <= 2: normalise the values. Oja 1982.)"},
    {"Longhorn",
     R"(Longhorn: the implicit step of online regression, stable for any key, in its diagonal form.

    d = beta / (1 + beta |k|^2)      W = (1 - d (k * k)^T) * W + (d * v) k^T      y = W q

beta is at least 0. Liu et al. 2024, arXiv 2407.14207, eq. 8-10.)"},
    {"ExactLonghorn", R"(Longhorn in its exact form.

    d = beta / (1 + beta |k|^2)      W = W + (d * (v - W k)) k^T      y = W q

beta is at least 0. Liu et al. 2024, arXiv 2407.14207.)"},
    // learners
    {"MesaMemory",
     R"(The memory of MesaNet: ridge regression from keys to values, with a decay. A read solves it exactly.

    W = decay W + beta v k^T      G = decay G + beta k k^T      y = W (G + diag(ridge))^-1 q

ridge is a weight of the state and starts at 1. von Oswald et al. 2025, arXiv 2506.05233.)"},
    {"IterativeMesaMemory",
     R"(MesaMemory whose reads take a number of steps of conjugate gradients.)"},
    {"KalmaMemory",
     R"(The memory of Gated KalmaNet: ridge regression with a decay, read by `iterations` Chebyshev steps.

    W = decay W + v k^T      G = decay G + k k^T      y = W ((1 - mix) q + mix z)

z solves (G + ridge |G| I) z = q, with the Frobenius norm of G. With mix = 0 it is gated linear
attention. Peng et al. 2025, arXiv 2511.21016.)"},
    {"MirasMemory", R"(A gradient step on the squared error, from a decayed sum of earlier steps.

    W = decay W - beta (W k - v) k^T      y = W q

Stable for beta |k|^2 <= 1 + decay. Behrouz et al. 2025, arXiv 2504.13173, section 5.)"},
    {"Yaad",
     R"(MirasMemory with the Huber loss: an error e that is longer than `threshold` counts as threshold e / |e|.

    e = W k - v      W = decay W - beta min(1, threshold / |e|) e k^T      y = W q

Behrouz et al. 2025, arXiv 2504.13173, section 5.)"},
    {"Moneta", R"(MirasMemory with a cubic loss and a matrix of bounded norm.

    e = W k - v      A = decay A - beta g(e) k^T      W = A / |A|_4^2      y = W q

g(e) = 3 tanh(10 e) (e^2 + 1e-6). A small A gives large outputs: start with A of size 1. Behrouz et
al. 2025, arXiv 2504.13173, section 5.)"},
    {"Memora", R"(MirasMemory whose rows are distributions over the entries of the key.

    A = decay A - beta (W k - v) k^T      W = softmax of every row of A      y = W q

Behrouz et al. 2025, arXiv 2504.13173, section 5.)"},
    // windows
    {"MomentumDeltaRule",
     R"(Momentum DeltaNet: the errors of a look-up go into a momentum M, and W follows it.

    M = momentum M + rate (W p - v) k^T      W = decay W - beta M      y = W q

p is the argument lookup, which the paper makes the key. arXiv 2605.05838.)"},
    {"TitansMemory",
     R"(The linear memory of Titans: gradient descent on |W k - v|^2 with momentum S and forgetting.

    S = momentum S - 2 rate (W k - v) k^T      W = (1 - forget) W + S      y = W q

rate, momentum and forget are in [0, 1]. Behrouz, Zhong, Mirrokni 2025, arXiv 2501.00663, eq. 11-15.)"},
    {"OmegaMemory",
     R"(The Omega rule: a gradient step on the errors of the last `window` tokens, the newest first.

    W' = decay W - beta sum_i weights_i (W k_i - v_i) k_i^T      y = W' q

Behrouz et al. 2025 (ATLAS), arXiv 2505.23735, eq. 9-10.)"},
    {"AtlasMemory",
     R"(Atlas: the Omega rule with momentum, whose steps are made nearly orthogonal as in Muon.

    S = momentum S - sum_i weights_i (W k_i - v_i) k_i^T      W = decay W + beta NS(S)      y = W q

NS is five Newton-Schulz steps. Behrouz et al. 2025 (ATLAS), arXiv 2505.23735.)"},
    {"FastWeightMemory",
     R"(The fast weight memory: a delta rule projected to the unit ball, read through a layer norm.

    P = W + beta (v - W k) k^T      W = P / max(1, |P|)      y = LN(W q)

Schlag, Munkhdalai, Schmidhuber 2021, arXiv 2011.07831, section 3, with one key.)"},
    {"RecursiveLeastSquares",
     R"(Recursive least squares, the RLS adaptive filter: W is a ridge regression of all values on all keys.

    g = P k / (decay + k^T P k)      W = W + (v - W k) g^T      P = (P - g k^T P) / decay      y = W q

P starts as I / ridge. Its trace grows to at most `largest` times that; then decays count as larger.
The state has a factor F of P = F F^T. Plackett 1950; Haykin, Adaptive Filter Theory.)"},
    // segments
    {"CachedDeltaRule",
     R"(Memory caching: a delta rule that keeps its matrix of every segment, and reads all of them.

    y = sum_i c_i W_i q over the segments kept and the open one      c = softmax of u.m_i
    m_i = the mean of `pooled` over the tokens of the segment      u = `segment_query`

A segment has `segment` tokens. It starts from the first state, or with restart=False from the last.
It keeps `capacity` segments, then overwrites the oldest; with refuse=True it raises ValueError.
`pooled_size` is that of `pooled` and u. Behrouz et al. 2026, arXiv 2602.24281, eq. 4, 9, 10.)"},
    {"CachedGatedDeltaRule", R"(CachedDeltaRule of a gated delta rule.)"},
    // models
    {"TttLinear",
     R"(TTT with a linear model W k + b: a mini-batch of `batch` tokens is a step of gradient descent.

    D = D + rate grad l(W_0)      W = W_0 - token_rate D      y = q + LN(W q + b)
    l(W) = 1/2 |LN(W k + b) - (v - k)|^2      W_0 is W at the start of the mini-batch

LN has weights of the state. Sun et al. 2024, arXiv 2407.04620, section 2.)"},
    {"TttMlp",
     R"(TttLinear with a net of one hidden layer, W_2 GELU(W_1 k + b_1) + b_2.

Zero weights learn only b_2: start from others, with memory.state(arrays). Sun et al. 2024,
arXiv 2407.04620, section 2.)"},
    {"TitansMlp",
     R"(The memory of Titans for a net with one hidden layer and no biases, y = B silu(A q).

    S = momentum S - 2 rate grad l(W)      W = (1 - forget) W + S

A net of zeros stays zero: start from other weights, with memory.state(arrays). Behrouz, Zhong,
Mirrokni 2025, arXiv 2501.00663, eq. 11-15.)"},
    {"NormalisedTitans",
     R"(The memory of Titans for W k with the layer norm of TttLinear, as flash-linear-attention computes it.

    l = 1/2 |LN(W k) - (v - k)|^2      S = momentum S - 2 rate grad l(W)
    W = (1 - forget) W + S      y = W q + LN(W q)

Behrouz, Zhong, Mirrokni 2025, arXiv 2501.00663.)"},
    {"TttRegression",
     R"(TTT with the model W k and the squared error, without layer norm and residual.

    D = D + rate (W_0 k - v) k^T      W = W_0 - token_rate D      y = W q

W_0 is W at the start of a mini-batch of `batch` tokens. Sun et al. 2024, arXiv 2407.04620.)"},
    {"TitansRegression", R"(TitansMemory, computed as for any model.)"},
    // recurrent
    {"DeltaRnn",
     R"(The Delta RNN: a fast net with a recurrent connection. The delta rule updates both matrices.

    W = W + beta (v - W k) k^T      R = R + beta' (v' - R k') k'^T      y' = W q + R softmax(y)

k' is `recurrent_key`, after its softmax, and so on; y is the output before. Irie, Schlag, Csordas,
Schmidhuber 2021, arXiv 2106.06295, section 3.)"},
    {"DeltaLstm",
     R"(The Delta LSTM: a fast LSTM whose six matrices are updated by the delta rule, as those of DeltaRnn.

    a = W q + R softmax(y)      for each of input gate i, update u and output gate o
    c = sigmoid(a_i) a_u + (1 - sigmoid(a_i)) c      y = sigmoid(a_o) c

The three vectors of a token are those of i, u and o. Irie, Schlag, Csordas, Schmidhuber 2021,
arXiv 2106.06295, section 3.)"},
    {"DeltaDeltaNet",
     R"(The Delta-Delta net: a delta net whose fast net is a delta net. W answers with what R reads and writes.

    W = W + sigmoid(beta) (v - W f(k)) f(k)^T      [q', k', v', beta'] = W f(q)
    R = R + sigmoid(beta') (v' - R f(k')) f(k')^T      y = R f(q')

f(x) = (ELU(x) + 1) / sum (ELU(x) + 1). Irie, Schlag, Csordas, Schmidhuber 2021, arXiv 2106.06295.)"},
    {"DeltaMlp", R"(The Delta MLP: a fast net of two layers, each written by the delta rule.

    W_1 = W_1 + sigmoid(beta) (v - W_1 f(k)) f(k)^T      W_2 likewise, with hidden_key and so on
    y = q + W_2 f(W_1 f(LN(q)))      f(x) = (ELU(x) + 1) / sum (ELU(x) + 1)

Irie, Schlag, Csordas, Schmidhuber 2021, arXiv 2106.06295, section 3.)"},
    {"RecurrentDeltaNet",
     R"(The recurrent delta net: the delta rule, with a slow net that uses the output before, y.

    u = tanh(y)    k' = softmax(k + R_k u)    q' = softmax(q + R_q u)    v' = v + R_v u
    b = sigmoid(beta + r.u)      W = W + b (v' - W k') k'^T      y' = W q'

R_k, R_q, R_v and r are weights of the state, `slow`. Irie, Schlag, Csordas, Schmidhuber 2021,
arXiv 2106.06295, section 3.)"},
    {"SelfReferentialMatrix",
     R"(The self-referential weight matrix: one matrix that computes the output and its own update. It reads first.

    [y; q; k; b] = W x      W = W + sigmoid(b) (W softmax(q) - W softmax(k)) softmax(k)^T

x is `query` of the read and `input` of the write. A zero matrix stays zero: start from another, with
memory.state(arrays). Irie, Schlag, Csordas, Schmidhuber 2022, arXiv 2202.05780, section 3.)"},
    // state_spaces
    {"LogLinearAttention",
     R"(Log-linear attention: the past is cut into blocks of 1, 1, 2, 4, ... tokens, each with a matrix.

    y = sum_l scales_l W_l q      W_l is decayed and written as in SimpleGatedLinearAttention

T tokens need 2 + floor(log2(T - 1)) levels. Guo et al. 2025, arXiv 2506.04761.)"},
    {"GatedSlotAttention",
     R"(Gated slot attention: softmax attention over slots, to which keys and values are written.

    K = diag(decay) K + strength k^T      V = V diag(decay) + v strength^T      y = V softmax(K q)

The paper has strength = 1 - decay. Zhang et al. 2024, arXiv 2409.07146.)"},
    {"Mamba3",
     R"(The memory of Mamba-3: gated linear attention that rotates keys and queries, and writes two tokens.

    a = a + pi step tanh(angles)      p' = R(a) (k + key_bias)      y = (W' R(a) (q + query_bias) + skip v) * silu(gate)
    W' = decay W + (1 - share) step decay v_before p^T + share step v p'^T

p and v_before are those of the token before. arXiv 2603.15569.)"},
    {"Mamba3Mimo",
     R"(The memory of Mamba-3 with several inputs and outputs: Mamba3 with `ranks` keys, values, queries,
gates and outputs per token, and one W.

    a = a + pi step tanh(angles)      P' = R(a) (K + key_bias)      Y = (W' R(a) (Q + query_bias) + skip V) * silu(gate)
    W' = decay W + (1 - share) step decay V_before P^T + share step V P'^T

Capital letters have one column per rank; P and V_before are those of the token before. arXiv 2603.15569.)"},
    // attention
    {"KeyValueCache",
     R"(Softmax attention over a cache of past tokens, the baseline of every fast-weight memory.

    y = sum_i p_i v_i      p = softmax of scale k_i.q

A full cache grows. With slide=True it forgets the oldest token, with refuse=True it raises
ValueError. scale 0 is 1 / sqrt(d_k). Vaswani et al. 2017, arXiv 1706.03762, eq. 1.)"},
    {"ForgettingAttention",
     R"(Softmax attention with a forget gate (FoX), over the last `capacity` tokens.

    y = sum_i p_i v_i      p = softmax of scale k_i.q + the sum of log decay since token i

decay is in (0, 1]; scale 0 is 1 / sqrt(d_k). Lin et al. 2025, arXiv 2503.02130.)"},
    {"PathAttention",
     R"(PaTH attention, over the last `capacity` tokens: every token reflects the keys of the past.

    k_i = (I - beta w w^T) k_i for all i before      y = sum_i p_i v_i
    p = softmax of scale k_i.q + the sum of log decay since token i

w is `reflection`: normalise it. scale 0 is 1 / sqrt(d_k). Yang et al. 2025, arXiv 2505.16381.)"},
    {"DeltaFormer",
     R"(DeltaFormer: keeps the difference to what softmax attention to the past already answers.

    u = v - beta sum_i p_i u_i      y = sum_i p'_i u_i, with the token itself
    p = softmax of scale k_i.q

Over the last `capacity` tokens; scale 0 is 1 / sqrt(d_k). arXiv 2505.19488.)"},
    {"Parallax",
     R"(Parallax: softmax attention whose weights are corrected by a second query r, `correction`.

    y = sum_i p_i (1 + m - b_i) v_i      b_i = k_i.r      m = sum_i p_i b_i
    p = softmax of scale k_i.q

Over the last `capacity` tokens; scale 0 is 1 / sqrt(d_k). arXiv 2605.29157.)"},
    {"StickBreakingAttention",
     R"(Stick-breaking attention, over the last `capacity` tokens: the newest take first, without a softmax.

    y = sum_i p_i v_i      p_i = s_i times the product of 1 - s_l over all newer tokens l
    s_i = sigmoid(scale k_i.q)

Weights add up to at most 1: give values a row of ones to read their sum. scale 0 is 1 / sqrt(d_k).
Tan et al. 2024, arXiv 2410.17980.)"},
    {"StrictStickBreakingAttention",
     R"(StickBreakingAttention as published: it reads first, so a token attends to those before it only.

Tan et al. 2024, arXiv 2410.17980.)"},
    {"CompressiveMemory",
     R"(The memory of the Compressive Transformer: the means of every `rate` tokens, the last `capacity` of them.

    y = sum_i p_i slot_i      p = softmax of slot_i.q / sqrt(d)

`inner_heads` split the entries. A scan writes `chunk` tokens, then reads with as many queries. Rae et
al. 2019, arXiv 1911.05507.)"},
    // continuous
    {"ContinuousMemory",
     R"(The infinity-former's memory: the past as a continuous signal on [0, 1], a sum of `functions` Gaussians.

    write: B = [samples of the past signal, new tokens] G      y = E_p[B psi(t)], p from B^T q / sqrt(d)

G is a ridge regression that contracts the past to [0, tau]; tau 0 gives every token an even share. A
scan writes `chunk` tokens, then reads with as many queries. `inner_heads` split the entries. `samples`
and `ridge` of 0 are chosen for `functions`. Chosen samples that do not keep `horizon` tokens are
refused. Martins, Marinho, Martins 2022, arXiv 2109.00301, eq. 4-12.)"},
    {"StickyContinuousMemory",
     R"(ContinuousMemory that samples the past where the reads attended to.

`draws` are numbers that the caller draws from [0, 1), `samples` for each chunk. Martins, Marinho,
Martins 2022, arXiv 2109.00301.)"},
    {"SlotContinuousMemory",
     R"(ContinuousMemory with rectangular functions, which are slots, and softmax attention to them.

Martins et al. 2020, arXiv 2006.07214, section 2, has its density.)"},
    // feature_mapped
    {"EluPlusOneLinearAttention",
     R"(NormalisedLinearAttention with the feature map ELU + 1 of keys and queries.

Katharopoulos et al. 2020, arXiv 2006.16236, eq. 7.)"},
    {"TaylorLinearAttention",
     R"(NormalisedLinearAttention with the second-order Taylor polynomial of exp(k.q) as its feature map.

Arora et al. 2024, arXiv 2402.18668, section 4.)"},
    {"SquaredLinearAttention",
     R"(NormalisedLinearAttention with the feature map of (k.q)^2: the products of two entries.)"},
    {"FavorPlusLinearAttention",
     R"(NormalisedLinearAttention with the random features FAVOR+ of exp(k.q): two for each of `features` draws.

`seed` draws them. Choromanski et al. 2021, arXiv 2009.14794, lemma 1 and section 2.4.)"},
    {"PowerAttention",
     R"(Power attention: NormalisedGatedAttention with the feature map of (k.q)^2.

arXiv 2507.04239.)"},
    {"DpfpGatedLinearAttention",
     R"(GatedLinearAttention with the feature map DPFP with nu = 1: every feature has its own decay.

Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174, eq. 37.)"},
    {"DpfpDeltaRule",
     R"(DeltaRule with the feature map DPFP with nu = 1, whose features have sum 1.

Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174, eq. 37.)"},
    {"L2GatedDeltaRule", R"(GatedDeltaRule that normalises its keys and queries to length 1.)"},
    // deferred
    {"DeferredNormalisedLinearAttention",
     R"(NormalisedLinearAttention that writes its matrix once in 8 tokens. It has no gradients.)"},
    {"DeferredDeltaRule",
     R"(DeltaRule that writes its matrix once in 8 tokens: faster steps of one token. It has no gradients.)"},
    {"DeferredNormalisedDeltaRule",
     R"(NormalisedDeltaRule that writes its matrix once in 5 tokens. It has no gradients.)"},
    {"DeferredKimiDeltaAttention",
     R"(KimiDeltaAttention that writes its matrix once in 8 tokens. It has no gradients.)"},
    {"DeferredGatedDeltaProduct",
     R"(GatedDeltaProduct that writes its matrix once in 3 tokens. It has no gradients.)"},
    {"Bfloat16DeltaRule",
     R"(DeferredDeltaRule whose matrix is stored as bfloat16. In float32 only.

The array "W" of a state has the bits of bfloat16 as uint16.)"},
    {"EightBitDeltaRule",
     R"(DeferredDeltaRule whose matrix is stored in 8 bits, with a scale for every row. In float32 only.)"},
};

}  // namespace

std::string_view text_of_memory(std::string_view name) {
  for (const Text& each : texts)
    if (each.name == name) return each.text;
  return {};
}

}  // namespace fw::python
