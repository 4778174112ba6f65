"""A small convolutional network on handwritten digits: digits.py trains on one site's part of them, digits_mingle.py in a swarm of sites.

usage: python digits.py SITE SITES
"""

import sys

import torch
from digits_data import load
from torch import nn
from torch.utils.data import DataLoader

train_digits, test_digits = load(site=int(sys.argv[1]), sites=int(sys.argv[2]))
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 16, 10)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)


def train(epochs):
    for _ in range(epochs):
        for images, labels in DataLoader(train_digits, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()


def test():
    images, labels = test_digits.tensors
    with torch.no_grad():
        return {"accuracy": ((model.eval()(images).argmax(1) == labels).float().mean().item(), len(labels))}


train(epochs=20)
print(test())
