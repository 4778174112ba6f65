"""The models of Mingle in PyTorch, with equal parameters, and the time of a step or an evaluation of each.

    torch_models.py step|evaluation MODEL SHAPE SAMPLES SECONDS DEVICE THREADS TF32

prints the milliseconds, the number of parameters and the seconds before the first measured step. Arguments are those of
`models/examples/training_speed.rs`; DEVICE is cpu or cuda, TF32 is 0 or 1.
"""

import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS = 8
"""Steps between two readings of the clock, and between two waits for a graphics card."""
VOCABULARY = 65
EVALUATED_AT_ONCE = {"cpu": 128, "cuda": 1000}
"""Images in a forward pass of an evaluation."""
TOKENS_AT_ONCE = 12288
CHANNELS_PER_GROUP = 16


class Bottleneck(nn.Module):
    def __init__(self, channels, to, step):
        super().__init__()
        narrow = to // 4
        self.conv1, self.norm1 = nn.Conv2d(channels, narrow, 1, bias=False), norm(narrow)
        self.conv2, self.norm2 = nn.Conv2d(narrow, narrow, 3, step, 1, bias=False), norm(narrow)
        self.conv3, self.norm3 = nn.Conv2d(narrow, to, 1, bias=False), norm(to)
        self.shortcut = None
        if channels != to:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, to, 1, step, bias=False), norm(to))

    def forward(self, images):
        seen = F.relu(self.norm1(self.conv1(images)), inplace=True)
        seen = F.relu(self.norm2(self.conv2(seen)), inplace=True)
        seen = self.norm3(self.conv3(seen))
        seen += images if self.shortcut is None else self.shortcut(images)
        return F.relu(seen, inplace=True)


def norm(channels):
    return nn.GroupNorm(channels // CHANNELS_PER_GROUP, channels)


def resnet_lite(channels):
    layers = [nn.Conv2d(channels, 32, 3, padding=1, bias=False), norm(32), nn.ReLU(inplace=True)]
    before = 32
    for to, count, step in [(128, 3, 1), (256, 3, 2), (512, 4, 2)]:
        for block in range(count):
            layers.append(Bottleneck(before, to, step if block == 0 else 1))
            before = to
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.c_fc, self.c_out = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, seen):
        batch, length, width = seen.shape
        parts = self.c_attn(self.ln_1(seen)).split(width, dim=2)
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        seen = seen + self.c_proj(mixed.transpose(1, 2).reshape(batch, length, width))
        return seen + self.c_out(F.gelu(self.c_fc(self.ln_2(seen))))


class Gpt(nn.Module):
    def __init__(self, layers, heads, width, context):
        super().__init__()
        self.context = context
        self.wte, self.wpe = nn.Embedding(VOCABULARY, width), nn.Embedding(context, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens):
        seen = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.h:
            seen = block(seen)
        return F.linear(self.ln_f(seen), self.wte.weight).flatten(0, 1)


def model_of(name, shape):
    if name.startswith("gpt"):
        size = {"layers": 4, "heads": 4, "width": 128, "context": 64}
        size.update((option.split("=")[0], int(option.split("=")[1])) for option in name[4:].split(",") if option)
        return Gpt(**size)
    channels, height, width = map(int, shape.split("x"))
    features = channels * height * width
    if name == "softmax":
        return nn.Sequential(nn.Flatten(), nn.Linear(features, 10))
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, 10))
    if name == "resnet-lite":
        return resnet_lite(channels)
    return nn.Sequential(
        nn.Conv2d(channels, 32, 5, padding=2), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(32, 64, 5, padding=2), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(), nn.Linear(features // channels * 4, 512), nn.ReLU(), nn.Linear(512, 10),
    )


class Data:
    """Samples on the device, and batches of them."""

    def __init__(self, model, shape, count, device, channels_last):
        self.context = getattr(model, "context", None)
        if self.context:
            self.text = torch.randint(0, VOCABULARY, (max(count, 4096) + 1,), device=device)
            self.offsets = torch.arange(self.context, device=device)
        else:
            self.images = torch.randn(count, *map(int, shape.split("x")), device=device)
            self.labels = torch.randint(0, 10, (count,), device=device)
        self.channels_last = channels_last

    def drawn(self, size):
        if self.context:
            starts = torch.randint(0, len(self.text) - self.context, (size,), device=self.text.device)
            windows = starts[:, None] + self.offsets
            return self.text[windows], self.text[windows + 1].flatten()
        chosen = torch.randint(0, len(self.images), (size,), device=self.images.device)
        return self.arranged(self.images[chosen]), self.labels[chosen]

    def in_order(self, size):
        if self.context:
            tokens = (len(self.text) - 1) // self.context * self.context
            windows, following = (self.text[from_:from_ + tokens].view(-1, self.context) for from_ in (0, 1))
            at_once = max(TOKENS_AT_ONCE // self.context, 1)
            for part, wanted in zip(windows.split(at_once), following.split(at_once)):
                yield part, wanted.flatten()
        else:
            for part, wanted in zip(self.images.split(size), self.labels.split(size)):
                yield self.arranged(part), wanted

    def arranged(self, images):
        return images.to(memory_format=torch.channels_last) if self.channels_last else images


def measured(seconds, device, work):
    """Seconds of the first call of `work`, and the median milliseconds of the later ones, two at least."""
    def timed():
        began = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - began

    warm_up = timed()
    times = []
    began = time.perf_counter()
    while len(times) < 2 or time.perf_counter() - began < seconds:
        times.append(timed() * 1e3)
    return statistics.median(times), warm_up


def work_ms(work, name, shape, count, seconds, device, channels_last):
    torch.manual_seed(1)
    model = model_of(name, shape).to(device)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    loss_of = nn.CrossEntropyLoss()
    if work == "evaluation":
        data = Data(model, shape, count, device, channels_last)

        def evaluate():
            with torch.inference_mode():
                correct, loss = 0, 0.0
                for batch, wanted in data.in_order(EVALUATED_AT_ONCE[device]):
                    outputs = model(batch)
                    correct = correct + (outputs.argmax(1) == wanted).sum()
                    loss = loss + loss_of(outputs, wanted) * len(wanted)
                return float(correct), float(loss)

        ms, warm_up = measured(seconds, device, evaluate)
    else:
        data = Data(model, shape, 20 * count, device, channels_last)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

        def steps():
            for _ in range(STEPS):
                batch, wanted = data.drawn(count)
                optimizer.zero_grad()
                loss_of(model(batch), wanted).backward()
                optimizer.step()

        ms, warm_up = measured(seconds, device, steps)
        ms /= STEPS
    return ms, sum(parameter.numel() for parameter in model.parameters()), warm_up


def main():
    work, name, shape, count, seconds, device, threads, tf32 = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.backends.cuda.matmul.allow_tf32 = tf32 == "1"
    torch.backends.cudnn.allow_tf32 = tf32 == "1"
    torch.backends.cudnn.benchmark = True
    formats = [False, True] if name in ("cnn", "resnet-lite") else [False]
    each = float(seconds) / len(formats)
    times = [work_ms(work, name, shape, int(count), each, device, last) for last in formats]
    ms, parameters, warm_up = min(times)
    print(f"{ms:.3f} {parameters} {warm_up:.1f}")


if __name__ == "__main__":
    main()
