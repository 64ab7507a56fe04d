#!/usr/bin/env python3
"""One training step of the vlp recipe (MLM + MIM + ITC + ITM) in plain PyTorch, timed.

The same sizes, objectives and numbers of tokens as `vlp bench train vlp`, written as a PyTorch user
would write them: nn.Linear, nn.LayerNorm, softmax attention, autocast for bfloat16, AdamW, clipping.
Prints one JSON object: pairs_per_s (median of the steps), loss, peak_rss_mb.

usage: torch_step.py SIZE BATCH PRECISION [STEPS]
"""
import json
import resource
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZES = {  # image, patch, width, vision depth, heads, text depth, fusion depth, embedding
    "nano": (64, 8, 192, 6, 3, 4, 2, 128),
    "tiny": (112, 16, 192, 12, 3, 6, 3, 128),
    "small": (224, 16, 384, 12, 6, 6, 6, 256),
    "base": (256, 16, 768, 12, 12, 6, 6, 256),
}
VOCABULARY, LENGTH, MASK = 8000, 32, 4


class Attention(nn.Module):
    def __init__(self, width, heads, cross=False):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width if cross else 3 * width)
        self.kv = nn.Linear(width, 2 * width) if cross else None
        self.out = nn.Linear(width, width)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, context=None, mask=None):
        if self.kv is None:
            q, k, v = map(self.split, self.q(x).chunk(3, dim=-1))
        else:
            q = self.split(self.q(x))
            k, v = map(self.split, self.kv(context).chunk(2, dim=-1))
        scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5)
        if mask is not None:
            scores = scores + mask
        y = scores.softmax(dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self, width, heads, pre_norm, cross=False):
        super().__init__()
        self.pre_norm = pre_norm
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.cross = Attention(width, heads, cross=True) if cross else None
        self.norm_cross = nn.LayerNorm(width) if cross else None
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, mask=None, context=None):
        if self.pre_norm:
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.attention(x, mask=mask))
        if self.cross is not None:
            x = self.norm_cross(x + self.cross(x, context))
        return self.norm2(x + self.mlp(x))


class Model(nn.Module):
    def __init__(self, image, patch, width, vision_depth, heads, text_depth, fusion_depth, embedding):
        super().__init__()
        self.patch, patches = patch, (image // patch) ** 2
        self.pixels_of_patch = 3 * patch * patch
        self.patch_embed = nn.Conv2d(3, width, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.mask_token = nn.Parameter(torch.zeros(1, 1, width))
        self.image_positions = nn.Parameter(torch.randn(1, patches + 1, width) * 0.02)
        self.vision = nn.ModuleList(Block(width, heads, True) for _ in range(vision_depth))
        self.vision_norm = nn.LayerNorm(width)
        self.words = nn.Embedding(VOCABULARY, width)
        self.text_positions = nn.Parameter(torch.randn(1, LENGTH, width) * 0.02)
        self.text_norm = nn.LayerNorm(width)
        self.text = nn.ModuleList(Block(width, heads, False) for _ in range(text_depth))
        self.fusion = nn.ModuleList(Block(width, heads, False, True) for _ in range(fusion_depth))
        self.image_projection = nn.Linear(width, embedding)
        self.text_projection = nn.Linear(width, embedding)
        self.logit_scale = nn.Parameter(torch.tensor(2.659))
        self.match = nn.Linear(width, 2)
        self.mlm_dense, self.mlm_norm = nn.Linear(width, width), nn.LayerNorm(width)
        self.mlm_bias = nn.Parameter(torch.zeros(VOCABULARY))
        self.mim = nn.Linear(width, self.pixels_of_patch)

    def encode_image(self, pixels, masked=None):
        x = self.patch_embed(pixels).flatten(2).transpose(1, 2)
        if masked is not None:
            x = torch.where(masked[..., None], self.mask_token.to(x.dtype), x)
        x = torch.cat([self.cls.to(x.dtype).expand(len(x), -1, -1), x], 1) + self.image_positions
        for block in self.vision:
            x = block(x)
        return self.vision_norm(x)

    def encode_text(self, ids):
        x = self.text_norm(self.words(ids) + self.text_positions)
        for block in self.text:
            x = block(x)
        return x

    def fuse(self, text, image):
        for block in self.fusion:
            text = block(text, context=image)
        return text

    def contrast(self, image, text):
        a = F.normalize(self.image_projection(image[:, 0]).float(), dim=-1)
        b = F.normalize(self.text_projection(text[:, 0]).float(), dim=-1)
        scores = self.logit_scale.exp() * a @ b.t()
        target = torch.arange(len(scores))
        return (F.cross_entropy(scores, target) + F.cross_entropy(scores.t(), target)) / 2, scores

    def matching(self, image, text, scores):
        with torch.no_grad():
            weights = scores.softmax(1).fill_diagonal_(0) + 1e-6
            other_text = torch.multinomial(weights, 1)[:, 0]
            weights = scores.t().softmax(1).fill_diagonal_(0) + 1e-6
            other_image = torch.multinomial(weights, 1)[:, 0]
        texts = torch.cat([text, text, text[other_text]])
        images = torch.cat([image, image[other_image], image])
        logits = self.match(self.fuse(texts, images)[:, 0]).float()
        return F.cross_entropy(logits, torch.cat([torch.ones(len(text)), torch.zeros(2 * len(text))]).long())

    def masked_words(self, image, ids):
        chosen = torch.rand(ids.shape) < 0.15
        hidden = self.fuse(self.encode_text(ids.masked_fill(chosen, MASK)), image)[chosen]
        hidden = self.mlm_norm(F.gelu(self.mlm_dense(hidden)).float())
        return F.cross_entropy((hidden @ self.words.weight.t() + self.mlm_bias).float(), ids[chosen])

    def masked_patches(self, pixels):
        p = self.patch
        side = pixels.shape[-1] // p
        masked = torch.rand(len(pixels), side * side) < 0.6
        predicted = self.mim(self.encode_image(pixels, masked)[:, 1:][masked]).float()
        patches = pixels.view(len(pixels), 3, side, p, side, p).permute(0, 2, 4, 1, 3, 5)
        return F.l1_loss(predicted, patches.reshape(len(pixels), side * side, -1)[masked])

    def forward(self, pixels, ids):
        image, text = self.encode_image(pixels), self.encode_text(ids)
        itc, scores = self.contrast(image, text)
        return (itc + self.matching(image, text, scores) + self.masked_words(image, ids)
                + self.masked_patches(pixels))


def main():
    size, batch, precision = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    steps = int(sys.argv[4]) if len(sys.argv) > 4 else 3
    torch.manual_seed(0)
    model = Model(*SIZES[size])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, betas=(0.9, 0.98), weight_decay=0.05)
    pixels = torch.randn(batch, 3, SIZES[size][0], SIZES[size][0])
    ids = torch.randint(5, VOCABULARY, (batch, LENGTH))
    seconds = []
    for step in range(steps + 1):
        began = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            loss = model(pixels, ids)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seconds.append(time.perf_counter() - began)
    seconds = sorted(seconds[1:])
    print(json.dumps({"pairs_per_s": batch / seconds[len(seconds) // 2], "loss": loss.item(),
                      "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
                      "torch": torch.__version__}))


if __name__ == "__main__":
    main()
