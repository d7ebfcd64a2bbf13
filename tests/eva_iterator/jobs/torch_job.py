# mypy: ignore-errors
# (a script as users write it: untyped, and it prints)
"""A training loop as users write them: a DataLoader with worker processes, epochs, an optimizer.

It logs the samples of every step and, at the end, the weights to the last bit.
"""

import json
import os
import sys
import time
from pathlib import Path

import torch
from eva_iterator import EvaIterator
from torch.utils.data import DataLoader, Dataset

EPOCHS, SAMPLES, BATCH = int(sys.argv[1]), int(sys.argv[2]), 4


class Squares(Dataset):
    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        value = torch.tensor([index / SAMPLES])
        return index, value, value * value


def order(epoch, done):
    """The samples of an epoch in their shuffled order, without the batches already done."""
    generator = torch.Generator().manual_seed(epoch)
    return torch.randperm(SAMPLES, generator=generator).tolist()[done * BATCH :]


torch.set_num_threads(1)  # the same sums in the same order
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
epoch, done = 0, 0
job_dir = Path(os.environ["EVA_JOB_DIR"])
log = (job_dir / "steps.log").open("a")

loader = EvaIterator(DataLoader(Squares(), batch_size=BATCH))
assert loader.batch_size == BATCH
if loader.restore_dir() is not None:
    saved = torch.load(loader.restore_dir() / "state.pt")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    epoch, done = saved["epoch"], saved["done"]

while epoch < EPOCHS:
    batches = EvaIterator(
        DataLoader(Squares(), batch_size=BATCH, sampler=order(epoch, done), num_workers=1)
    )
    for index, x, y in batches:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.002)  # a model worth the name
        done += 1
        print(epoch, *index.tolist(), file=log, flush=True)
        if batches.should_checkpoint():
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            state.update(epoch=epoch, done=done)
            torch.save(state, batches.checkpoint_dir() / "state.pt")
            batches.checkpoint_done()
    epoch, done = epoch + 1, 0

weights = [value.hex() for tensor in model.parameters() for value in tensor.flatten().tolist()]
(job_dir / "weights.json").write_text(json.dumps(weights))
