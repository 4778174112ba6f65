"""A LoRA adapter of a small GPT-2 with random weights, trained by the Trainer of transformers. Only the adapter is exchanged.

usage: MINGLE_HOME=HOME python gpt2_lora.py SITE
"""

import sys
import tempfile

import torch
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

import mingle.hf

torch.manual_seed(0)  # the frozen weights must be the same on all sites
config = GPT2Config(vocab_size=32, n_positions=32, n_embd=64, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
model = get_peft_model(GPT2LMHeadModel(config), LoraConfig(r=8, target_modules=["c_attn", "c_fc"], fan_in_fan_out=True))



def sequences(step, count):
    """Sequences that count up by `step` from anywhere."""
    return (torch.randint(0, 32, (count, 1)) + step * torch.arange(32)) % 32


def evaluate():
    """The loss over the sequences of all sites."""
    return {"val_loss": (model(input_ids=held_out, labels=held_out).loss.item(), len(held_out))}


held_out = torch.cat([sequences(1 + site, 16) for site in range(4)])
torch.manual_seed(1 + int(sys.argv[1]))
samples = [{"input_ids": row, "labels": row} for row in sequences(1 + int(sys.argv[1]) % 4, 256)]  # each site has a step of its own

callback = mingle.hf.Callback(name="gpt2-lora", samples=len(samples), evaluate=evaluate)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        per_device_train_batch_size=16,
        learning_rate=1e-2,  # falls to 0 with the run, whose length the callback sets
        logging_steps=10,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=samples, callbacks=[callback])
    before = trainer.evaluate(samples)["eval_loss"]
    trainer.train()
    after = trainer.evaluate(samples)["eval_loss"]
print(f"{callback.swarm.exchanges} exchanges of {callback.swarm.tensors.layout.dimension} numbers, loss from {before:.3f} to {after:.3f}")
