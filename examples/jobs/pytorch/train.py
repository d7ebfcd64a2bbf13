# ruff: noqa: INP001, T201  an example is a program that prints
"""Fit a line to noisy points. What Eva needs is marked; without Eva it does nothing."""

import torch
from eva_iterator import EvaIterator  # Eva

BATCHES = 200

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
points = torch.rand(BATCHES, 32, 1)

steps = EvaIterator(range(BATCHES))  # Eva
begin = 0
restored = steps.restore_dir()  # Eva
if restored is not None:
    saved = torch.load(restored / "state.pt")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    begin = saved["step"]

for step in steps:
    if step < begin:
        continue
    batch = points[step]
    loss = torch.nn.functional.mse_loss(model(batch), 3 * batch + 1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if steps.should_checkpoint():  # Eva
        folder = steps.checkpoint_dir()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}
        torch.save(state, folder / "state.pt")
        steps.checkpoint_done()

print(f"loss {loss.item():.4f} after {BATCHES} batches")
