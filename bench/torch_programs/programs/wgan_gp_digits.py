"""A Wasserstein GAN with gradient penalty on digits, in the manner of PyTorch-GAN."""

import sys

import torch
import torch.autograd as autograd
import torch.nn as nn
from source import images
from torch.utils.data import DataLoader, TensorDataset

max_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
torch.manual_seed(3)
latent_dim = 16
img_shape = (1, 8, 8)
n_critic = 5


class Generator(nn.Module):
    def __init__(self):
        super(Generator, self).__init__()

        def block(in_feat, out_feat, normalize=True):
            layers = [nn.Linear(in_feat, out_feat)]
            if normalize:
                layers.append(nn.BatchNorm1d(out_feat, 0.8))
            layers.append(nn.LeakyReLU(0.2, inplace=True))
            return layers

        self.model = nn.Sequential(
            *block(latent_dim, 32, normalize=False),
            *block(32, 64),
            nn.Linear(64, 64),
            nn.Tanh(),
        )

    def forward(self, z):
        img = self.model(z)
        img = img.view(img.shape[0], *img_shape)
        return img


class Discriminator(nn.Module):
    def __init__(self):
        super(Discriminator, self).__init__()

        self.model = nn.Sequential(
            nn.Linear(64, 64),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(64, 32),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(32, 1),
        )

    def forward(self, img):
        img_flat = img.view(img.shape[0], -1)
        validity = self.model(img_flat)
        return validity


# Loss weight for gradient penalty
lambda_gp = 10

# Initialize generator and discriminator
generator = Generator()
discriminator = Discriminator()
dataset = TensorDataset(torch.tensor(images).view(-1, 1, 8, 8) * 2 - 1)
dataloader = DataLoader(dataset, batch_size=32, shuffle=True, drop_last=True)

# Optimizers
optimizer_G = torch.optim.Adam(generator.parameters(), lr=0.0002, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=0.0002, betas=(0.5, 0.999))


def compute_gradient_penalty(D, real_samples, fake_samples):
    """Calculates the gradient penalty loss for WGAN GP"""
    # Random weight term for interpolation between real and fake samples
    alpha = torch.rand((real_samples.size(0), 1, 1, 1))
    # Get random interpolation between real and fake samples
    interpolates = (alpha * real_samples + ((1 - alpha) * fake_samples)).requires_grad_(True)
    d_interpolates = D(interpolates)
    fake = torch.ones((real_samples.shape[0], 1))
    # Get gradient w.r.t. interpolates
    gradients = autograd.grad(
        outputs=d_interpolates,
        inputs=interpolates,
        grad_outputs=fake,
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    gradients = gradients.view(gradients.size(0), -1)
    gradient_penalty = ((gradients.norm(2, dim=1) - 1) ** 2).mean()
    return gradient_penalty


def discriminator_step(real_imgs, z):
    optimizer_D.zero_grad()
    # Generate a batch of images
    fake_imgs = generator(z).detach()
    # Real images
    real_validity = discriminator(real_imgs)
    # Fake images
    fake_validity = discriminator(fake_imgs)
    # Gradient penalty
    gradient_penalty = compute_gradient_penalty(discriminator, real_imgs.data, fake_imgs.data)
    # Adversarial loss
    d_loss = -torch.mean(real_validity) + torch.mean(fake_validity) + lambda_gp * gradient_penalty
    d_loss.backward()
    optimizer_D.step()
    return d_loss


def generator_step(z):
    optimizer_G.zero_grad()
    # Generate a batch of images
    fake_imgs = generator(z)
    # Loss measures generator's ability to fool the discriminator
    fake_validity = discriminator(fake_imgs)
    g_loss = -torch.mean(fake_validity)
    g_loss.backward()
    optimizer_G.step()
    return g_loss


losses = []
batches_done = 0
while len(losses) < max_steps:
    for i, (imgs,) in enumerate(dataloader):
        # Sample noise as generator input
        z = torch.randn(imgs.shape[0], latent_dim)
        d_loss = discriminator_step(imgs, z)
        # Train the generator every n_critic steps
        if i % n_critic == 0:
            g_loss = generator_step(z)
            if batches_done % 100 == 0:
                print("[Batch %d] [D loss: %f] [G loss: %f]" % (batches_done, d_loss.item(), g_loss.item()))
            batches_done += n_critic
        losses.append(d_loss.item())
        if len(losses) == max_steps:
            break
