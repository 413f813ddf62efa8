"""Writes pytorch_{rnn,lstm,gru}.safetensors: two layers of torch.nn.RNN, LSTM and GRU in float64,
two sequences, their outputs, and the gradients of <dy, y>. Arrays are token by token.

    python3 make_pytorch_recurrent.py

The committed files come from Debian 12's python3-torch and PyPI's safetensors.
"""

import pathlib

import safetensors
import safetensors.torch
import torch

INPUTS, UNITS, SEQUENCES, TOKENS = 3, 5, 2, 4


def main():
    torch.set_default_dtype(torch.float64)
    for seed, kind in enumerate(["RNN", "LSTM", "GRU"]):
        torch.manual_seed(seed)
        net = getattr(torch.nn, kind)(INPUTS, UNITS, num_layers=2, batch_first=True)
        x = torch.randn(SEQUENCES, TOKENS, INPUTS, requires_grad=True)
        y = net(x)[0].contiguous()
        dy = torch.randn_like(y)
        y.backward(dy)
        tensors = {"x": x.detach(), "y": y.detach(), "dy": dy, "dx": x.grad.contiguous()}
        for name, weight in net.named_parameters():
            tensors[name] = weight.detach()
            tensors["grad." + name] = weight.grad
        metadata = {
            "about": f"two layers of torch.nn.{kind}; torch {torch.__version__}, "
            f"safetensors {safetensors.__version__}"
        }
        path = pathlib.Path(__file__).parent / f"pytorch_{kind.lower()}.safetensors"
        safetensors.torch.save_file(tensors, path, metadata)


if __name__ == "__main__":
    main()
