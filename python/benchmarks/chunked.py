"""The delta rule and the gated delta rule in PyTorch, chunk by chunk and token by token.

Inputs are [batch, heads, time, d], the layout of batched products. W (d_k x d_v) is the matrix before a
chunk of C tokens, transposed. With G the products of decays in the chunk, L_ij = G_i / G_j for i >= j and
B = diag(beta):

    A = I + strictly_lower(B (K K^T) L)
    U = A^-1 B V        P = A^-1 B diag(G) K          for all chunks at once
    X = U - P W                                       the updates, one a row
    Y = diag(G) Q W + lower((Q K^T) L) X
    W = G_C W + (diag(G_C / G) K)^T X

Yang et al. 2024, arXiv 2406.06484, section 3, and arXiv 2412.06464, section 3.
"""

import torch


def split(x, chunk):
    return x.unflatten(2, (-1, chunk))


def chunked(query, key, value, beta, log_decay, chunk):
    """Outputs and final W. log_decay is None for the delta rule; time is a multiple of chunk."""
    q, k, v, b = (split(x, chunk) for x in (query, key, value, beta))
    kk, qk = k @ k.transpose(-1, -2), q @ k.transpose(-1, -2)
    kept = k
    if log_decay is not None:
        g = split(log_decay, chunk).cumsum(-1)
        lower = torch.exp((g[..., :, None] - g[..., None, :]).tril())
        kk, qk = kk * lower, qk * lower
        grown = torch.exp(g)[..., None]
        q, k = q * grown, k * grown
        kept = kept * torch.exp(g[..., -1:] - g)[..., None]
        last = torch.exp(g[..., -1])[..., None, None]
    b = b[..., None]
    system = (b * kk).tril(-1)  # the diagonal of ones is implied
    solved = torch.linalg.solve_triangular(
        system, torch.cat([b * v, b * k], -1), upper=False, unitriangular=True)
    updates, looked_up = solved.split([v.shape[-1], k.shape[-1]], -1)
    qk, kept = qk.tril(), kept.transpose(-1, -2)
    memory = query.new_zeros(*query.shape[:2], key.shape[-1], value.shape[-1])
    outputs = []
    for n in range(q.shape[2]):
        x = updates[:, :, n] - looked_up[:, :, n] @ memory
        outputs.append(q[:, :, n] @ memory + qk[:, :, n] @ x)
        memory = (memory if log_decay is None else last[:, :, n] * memory) + kept[:, :, n] @ x
    return torch.cat(outputs, 2), memory


def recurrent(query, key, value, beta, log_decay):
    """The same, one token at a time."""
    memory = query.new_zeros(*query.shape[:2], key.shape[-1], value.shape[-1])
    outputs = []
    for t in range(query.shape[2]):
        q, k, v = (x[:, :, t, None] for x in (query, key, value))
        if log_decay is not None:
            memory = memory * torch.exp(log_decay[:, :, t, None, None])
        memory = memory + k.transpose(-1, -2) @ (beta[:, :, t, None, None] * (v - k @ memory))
        outputs.append(q @ memory)
    return torch.cat(outputs, 2), memory
