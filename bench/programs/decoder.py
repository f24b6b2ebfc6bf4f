"""A decoder of 12 layers that makes one token a step, as a language model does when it serves one user: some 200 small
kernels a step, bf16, with PyTorch."""
import torch
from torch.nn import functional

VOCABULARY = 8192


class Decoder:
    def __init__(self, width=1024, layers=12, heads=16, context=256):
        def weight(*shape):
            return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02
        self.heads, self.width = heads, width
        self.embedding = weight(VOCABULARY, width)
        self.layers = [{"qkv": weight(3 * width, width), "out": weight(width, width), "up": weight(4 * width, width),
                        "down": weight(width, 4 * width)} for _ in range(layers)]
        self.keys = torch.zeros(layers, 1, heads, context, width // heads, device="cuda", dtype=torch.bfloat16)
        self.values = torch.zeros_like(self.keys)
        self.place = torch.zeros(1, device="cuda", dtype=torch.long)
        self.token = torch.zeros(1, device="cuda", dtype=torch.long)
        self.context = context

    def layer(self, x, number, weights):
        h = functional.layer_norm(x, (self.width,))
        q, k, v = (part.view(1, self.heads, 1, -1) for part in functional.linear(h, weights["qkv"]).chunk(3, dim=-1))
        self.keys[number].index_copy_(2, self.place, k)
        self.values[number].index_copy_(2, self.place, v)
        a = functional.scaled_dot_product_attention(q, self.keys[number], self.values[number])
        x = x + functional.linear(a.view(1, -1), weights["out"])
        h = functional.layer_norm(x, (self.width,))
        return x + functional.linear(functional.gelu(functional.linear(h, weights["up"])), weights["down"])

    @torch.no_grad()
    def step(self):
        """Leaves the next token in self.token, on the card."""
        x = self.embedding[self.token]
        for number, weights in enumerate(self.layers):
            x = self.layer(x, number, weights)
        self.token.copy_(functional.linear(x, self.embedding).argmax(dim=-1))
        self.place.add_(1).remainder_(self.context)
