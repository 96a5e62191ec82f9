"""A small denoising diffusion model of digits (DDPM), with an exponential moving average of its weights."""

import copy
import math
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from source import images
from torch.utils.data import DataLoader, TensorDataset

max_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
torch.manual_seed(0)
timesteps = 100


def extract(a, t, x_shape):
    b, *_ = t.shape
    out = a.gather(-1, t)
    return out.reshape(b, *((1,) * (len(x_shape) - 1)))


def cosine_beta_schedule(timesteps, s=0.008):
    steps = timesteps + 1
    x = torch.linspace(0, timesteps, steps)
    alphas_cumprod = torch.cos(((x / timesteps) + s) / (1 + s) * math.pi * 0.5) ** 2
    alphas_cumprod = alphas_cumprod / alphas_cumprod[0]
    betas = 1 - (alphas_cumprod[1:] / alphas_cumprod[:-1])
    return torch.clip(betas, 0.0001, 0.9999)


class SinusoidalPosEmb(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        device = x.device
        half_dim = self.dim // 2
        emb = math.log(10000) / (half_dim - 1)
        emb = torch.exp(torch.arange(half_dim, device=device) * -emb)
        emb = x[:, None] * emb[None, :]
        emb = torch.cat((emb.sin(), emb.cos()), dim=-1)
        return emb


class Block(nn.Module):
    def __init__(self, dim, dim_out, time_dim):
        super().__init__()
        self.proj = nn.Conv2d(dim, dim_out, 3, padding=1)
        self.norm = nn.GroupNorm(4, dim_out)
        self.act = nn.SiLU()
        self.mlp = nn.Sequential(nn.SiLU(), nn.Linear(time_dim, dim_out * 2))

    def forward(self, x, t):
        x = self.norm(self.proj(x))
        scale, shift = self.mlp(t)[:, :, None, None].chunk(2, dim=1)
        return self.act(x * (scale + 1) + shift)


class Unet(nn.Module):
    def __init__(self, dim=8, time_dim=32):
        super().__init__()
        self.time_mlp = nn.Sequential(SinusoidalPosEmb(16), nn.Linear(16, time_dim), nn.GELU(), nn.Linear(time_dim, time_dim))
        self.init_conv = nn.Conv2d(1, dim, 3, padding=1)
        self.down1 = Block(dim, dim * 2, time_dim)
        self.pool = nn.AvgPool2d(2)
        self.mid = Block(dim * 2, dim * 2, time_dim)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.up1 = Block(dim * 4, dim, time_dim)
        self.final = nn.Conv2d(dim * 2, 1, 1)

    def forward(self, x, time):
        t = self.time_mlp(time)
        x = self.init_conv(x)
        r = x.clone()
        h = self.down1(x, t)
        x = self.mid(self.pool(h), t)
        x = torch.cat((self.up(x), h), dim=1)
        x = self.up1(x, t)
        x = torch.cat((x, r), dim=1)
        return self.final(x)


class Diffusion(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        betas = cosine_beta_schedule(timesteps)
        alphas = 1.0 - betas
        alphas_cumprod = torch.cumprod(alphas, dim=0)
        alphas_cumprod_prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
        self.register_buffer("betas", betas)
        self.register_buffer("alphas_cumprod", alphas_cumprod)
        self.register_buffer("sqrt_alphas_cumprod", torch.sqrt(alphas_cumprod))
        self.register_buffer("sqrt_one_minus_alphas_cumprod", torch.sqrt(1.0 - alphas_cumprod))
        self.register_buffer("sqrt_recip_alphas", torch.sqrt(1.0 / alphas))
        self.register_buffer("posterior_variance", betas * (1.0 - alphas_cumprod_prev) / (1.0 - alphas_cumprod))

    def q_sample(self, x_start, t, noise):
        return (
            extract(self.sqrt_alphas_cumprod, t, x_start.shape) * x_start
            + extract(self.sqrt_one_minus_alphas_cumprod, t, x_start.shape) * noise
        )

    def forward(self, x_start, t):
        noise = torch.randn_like(x_start)
        x_noisy = self.q_sample(x_start=x_start, t=t, noise=noise)
        predicted_noise = self.model(x_noisy, t)
        return F.mse_loss(noise, predicted_noise)

    @torch.no_grad()
    def p_sample(self, x, t, t_index):
        model_mean = extract(self.sqrt_recip_alphas, t, x.shape) * (
            x - extract(self.betas, t, x.shape) * self.model(x, t) / extract(self.sqrt_one_minus_alphas_cumprod, t, x.shape)
        )
        if t_index == 0:
            return model_mean
        return model_mean + torch.sqrt(extract(self.posterior_variance, t, x.shape)) * torch.randn_like(x)

    @torch.no_grad()
    def sample(self, batch_size):
        img = torch.randn((batch_size, 1, 8, 8))
        for i in reversed(range(0, timesteps)):
            img = self.p_sample(img, torch.full((batch_size,), i, dtype=torch.long), i)
        return img


dataset = TensorDataset(torch.tensor(images).reshape(-1, 1, 8, 8) * 2 - 1)
loader = DataLoader(dataset, batch_size=16, shuffle=True, drop_last=True)
model = Diffusion(Unet())
ema_model = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=200)


def train_step(x, t):
    loss = model(x, t)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    with torch.no_grad():
        for ema_p, p in zip(ema_model.parameters(), model.parameters()):
            ema_p.mul_(0.995).add_(p, alpha=1 - 0.995)
    return loss


losses = []
step = 0
while step < max_steps:
    for (batch,) in loader:
        # sample a timestep for every example in the batch
        t = torch.randint(0, timesteps, (batch.shape[0],)).long()
        loss = train_step(batch, t)
        if step % 100 == 0:
            print("Loss:", f"{loss.item():.4f}")
        losses.append(loss.item())
        step += 1
        if step == max_steps:
            break

samples = ema_model.sample(2)
print(samples.shape, f"{samples.std().item():.3f}")
