"""The recurrences in torch, one token at a time, as written in the papers: what the tests compare with."""

import torch


def outer(a, b):
    return a[..., :, None] * b[..., None, :]


def product(matrix, vector):
    return (matrix @ vector[..., None])[..., 0]


def over(number):
    """A number per head, for products with vectors."""
    return number[..., None]


def linear_attention(s, q, k, v):
    s["W"] = s["W"] + outer(v, k)
    return product(s["W"], q)


def add_compensated(s, update, k):
    s["W"] = s["W"] + s["sum.errors"] + update
    s["normaliser.sum"] = s["normaliser.sum"] + k - s["normaliser.compensation"]
    s["sum.errors"] = torch.zeros_like(s["W"])
    s["normaliser.compensation"] = torch.zeros_like(k)


def normalised_read(s, q, epsilon):
    return product(s["W"], q) / over((s["normaliser.sum"] * q).sum(-1) + epsilon)


def normalised_linear_attention(s, q, k, v, epsilon=1e-5):
    add_compensated(s, outer(v, k), k)
    return normalised_read(s, q, epsilon)


def delta_rule(s, q, k, v, beta):
    s["W"] = s["W"] + outer(over(beta) * (v - product(s["W"], k)), k)
    return product(s["W"], q)


def normalised_delta_rule(s, q, k, v, beta, epsilon=1e-5):
    weight = (s["normaliser.sum"] * k).sum(-1)
    weight = torch.where(weight == 0, torch.ones_like(weight), weight)
    gain = 1 / (weight + epsilon)
    update = over(beta * weight * gain) * (v - over(gain) * product(s["W"], k))
    add_compensated(s, outer(update, k), k)
    return normalised_read(s, q, epsilon)


def gated_linear_attention(s, q, k, v, decay):
    s["W"] = s["W"] * decay[..., None, :]
    return linear_attention(s, q, k, v)


def simple_gated_linear_attention(s, q, k, v, decay):
    return gated_linear_attention(s, q, k, v, over(decay))


def gated_delta_rule(s, q, k, v, beta, decay):
    return kimi_delta_attention(s, q, k, v, beta, over(decay))


def kimi_delta_attention(s, q, k, v, beta, decay):
    s["W"] = s["W"] * decay[..., None, :]
    return delta_rule(s, q, k, v, beta)


def hebbian_memory(s, q, k, v, decay=0.95, rate=0.5):
    s["W"] = decay * s["W"] + rate * outer(v, k)
    return product(s["W"], q)


def low_rank_rule(s, q, k, v, removal, replacement, decay):
    removed = product(s["W"], removal)
    s["W"] = s["W"] * decay[..., None, :] + outer(removed, replacement) + outer(v, k)
    return product(s["W"], q)


def mlstm(s, q, k, v, input_gate, forget_gate, epsilon=1e-6):
    log_forget = torch.nn.functional.logsigmoid(forget_gate) + s["log_scale"]
    scale = torch.maximum(log_forget, input_gate)
    forget, write = torch.exp(log_forget - scale), torch.exp(input_gate - scale)
    s["log_scale"] = scale
    s["W"] = forget[..., None, None] * s["W"] + over(write)[..., None] * outer(v, k)
    s["normaliser"] = over(forget) * s["normaliser"] + over(write) * k
    size = torch.maximum((s["normaliser"] * q).sum(-1).abs(), torch.exp(-scale))
    return product(s["W"], q) / over(size + epsilon)


STEPS = {
    "LinearAttention": linear_attention,
    "NormalisedLinearAttention": normalised_linear_attention,
    "DeltaRule": delta_rule,
    "NormalisedDeltaRule": normalised_delta_rule,
    "GatedLinearAttention": gated_linear_attention,
    "SimpleGatedLinearAttention": simple_gated_linear_attention,
    "GatedDeltaRule": gated_delta_rule,
    "KimiDeltaAttention": kimi_delta_attention,
    "HebbianMemory": hebbian_memory,
    "LowRankRule": low_rank_rule,
    "Mlstm": mlstm,
}


def scan(rule, inputs, state):
    """Outputs [batch, time, heads, d_v] and the final state, from tensors of the same layout."""
    state = dict(state)
    outputs = [STEPS[rule](state, *(x[:, t] for x in inputs)) for t in range(inputs[0].shape[1])]
    return torch.stack(outputs, dim=1), state
