#!/usr/bin/env python3
"""Images a second through a ViT-B image tower in PyTorch, or that tower as an ONNX file.

usage: torch_encode.py PATCH BATCH fp32|bf16      prints {"images_per_s": ...}
       torch_encode.py PATCH BATCH FILE.onnx      writes the tower, fp32, for another runtime
"""
import json
import sys
import time

import torch
import torch.nn as nn

from torch_step import Block


class Tower(nn.Module):
    def __init__(self, patch, image=224, width=768, depth=12, heads=12, embedding=512):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, width, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads, True) for _ in range(depth)))
        self.norm, self.projection = nn.LayerNorm(width), nn.Linear(width, embedding)

    def forward(self, pixels):
        x = self.patch_embed(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.projection(self.norm(self.blocks(x))[:, 0])


def main():
    patch, batch, what = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.manual_seed(0)
    tower = Tower(patch).eval()
    pixels = torch.randn(batch, 3, 224, 224)
    with torch.no_grad():
        if what.endswith(".onnx"):
            torch.onnx.export(tower, pixels, what, input_names=["pixels"], output_names=["embedding"])
            return
        seconds = []
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=what == "bf16"):
            until = time.perf_counter() + 5
            while len(seconds) < 3 or time.perf_counter() < until:
                began = time.perf_counter()
                tower(pixels)
                seconds.append(time.perf_counter() - began)
    seconds = sorted(seconds[1:])
    print(json.dumps({"images_per_s": batch / seconds[len(seconds) // 2]}))


main()
