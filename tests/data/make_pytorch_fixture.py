"""Writes pytorch_linear.safetensors: a PyTorch module's weights, an input, and its output.

    y = x + down(gelu(up(norm(x))))     LayerNorm eps 1e-5, exact (erf) GELU, float32

Needs recent versions of torch and safetensors; the file's metadata has the versions in use:
    python3 make_pytorch_fixture.py
The committed file comes from Debian 12's python3-torch and PyPI's safetensors. Other versions may
differ in the last bits of the output and in the metadata.
"""

import pathlib

import safetensors
import safetensors.torch
import torch
from torch import nn

WIDTH, HIDDEN, TOKENS = 12, 24, 7


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, HIDDEN)
        self.down = nn.Linear(HIDDEN, WIDTH)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH, eps=1e-5)
        self.ffn = FeedForward()

    def forward(self, x):
        return x + self.ffn(self.norm(x))


def main():
    torch.manual_seed(20240607)
    block = Block()
    # LayerNorm starts as the identity. With random values, a swapped weight and bias are an error.
    nn.init.normal_(block.norm.weight, mean=1.0, std=0.3)
    nn.init.normal_(block.norm.bias, std=0.3)
    tensors = {name: weight.detach() for name, weight in block.state_dict().items()}
    with torch.no_grad():
        tensors["input"] = torch.randn(TOKENS, WIDTH)
        tensors["output"] = block(tensors["input"])
    head = torch.randn(5, WIDTH)
    tensors["head.weight"] = head.to(torch.bfloat16)
    tensors["head_f16.weight"] = head.to(torch.float16)
    # The two heads as PyTorch rounds them, for comparison with the reader.
    tensors["head.expected"] = tensors["head.weight"].float()
    tensors["head_f16.expected"] = tensors["head_f16.weight"].float()
    # One entry, because safetensors writes several in an order that changes from run to run.
    metadata = {
        "about": "output = input + down(gelu(up(norm(input)))), LayerNorm eps 1e-5, erf GELU; "
        f"torch {torch.__version__}, safetensors {safetensors.__version__}"
    }
    path = pathlib.Path(__file__).with_name("pytorch_linear.safetensors")
    safetensors.torch.save_file(tensors, str(path), metadata)


if __name__ == "__main__":
    main()
