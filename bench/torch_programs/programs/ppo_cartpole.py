"""PPO on CartPole, in the manner of CleanRL."""

import sys

import torch
import torch.nn as nn
import torch.optim as optim
from cartpole import CartPole
from torch.distributions.categorical import Categorical

max_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
num_envs, num_steps, num_minibatches, update_epochs = 4, 32, 4, 4
batch_size = num_envs * num_steps
minibatch_size = batch_size // num_minibatches
learning_rate, gamma, gae_lambda, clip_coef = 2.5e-3, 0.99, 0.95, 0.2
ent_coef, vf_coef, max_grad_norm, norm_adv, clip_vloss = 0.01, 0.5, 0.5, True, True


def layer_init(layer, std=2**0.5, bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(
            layer_init(nn.Linear(4, 64)),
            nn.Tanh(),
            layer_init(nn.Linear(64, 64)),
            nn.Tanh(),
            layer_init(nn.Linear(64, 1), std=1.0),
        )
        self.actor = nn.Sequential(
            layer_init(nn.Linear(4, 64)),
            nn.Tanh(),
            layer_init(nn.Linear(64, 64)),
            nn.Tanh(),
            layer_init(nn.Linear(64, 2), std=0.01),
        )

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        logits = self.actor(x)
        probs = Categorical(logits=logits)
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


torch.manual_seed(1)
device = torch.device("cpu")
envs = [CartPole(seed) for seed in range(num_envs)]
agent = Agent().to(device)
optimizer = optim.Adam(agent.parameters(), lr=learning_rate, eps=1e-5)


def train_step(mb_obs, mb_actions, mb_logprobs, mb_advantages, mb_returns, mb_values):
    _, newlogprob, entropy, newvalue = agent.get_action_and_value(mb_obs, mb_actions)
    logratio = newlogprob - mb_logprobs
    ratio = logratio.exp()

    with torch.no_grad():
        # calculate approx_kl http://joschu.net/blog/kl-approx.html
        approx_kl = ((ratio - 1) - logratio).mean()
        clipfrac = ((ratio - 1.0).abs() > clip_coef).double().mean()

    if norm_adv:
        mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std(correction=1) + 1e-8)

    # Policy loss
    pg_loss1 = -mb_advantages * ratio
    pg_loss2 = -mb_advantages * torch.clamp(ratio, 1 - clip_coef, 1 + clip_coef)
    pg_loss = torch.max(pg_loss1, pg_loss2).mean()

    # Value loss
    newvalue = newvalue.view(-1)
    if clip_vloss:
        v_loss_unclipped = (newvalue - mb_returns) ** 2
        v_clipped = mb_values + torch.clamp(newvalue - mb_values, -clip_coef, clip_coef)
        v_loss_clipped = (v_clipped - mb_returns) ** 2
        v_loss_max = torch.max(v_loss_unclipped, v_loss_clipped)
        v_loss = 0.5 * v_loss_max.mean()
    else:
        v_loss = 0.5 * ((newvalue - mb_returns) ** 2).mean()

    entropy_loss = entropy.mean()
    loss = pg_loss - ent_coef * entropy_loss + v_loss * vf_coef

    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), max_grad_norm)
    optimizer.step()
    return loss, approx_kl, clipfrac


# ALGO Logic: Storage setup
obs = torch.zeros((num_steps, num_envs, 4)).to(device)
actions = torch.zeros((num_steps, num_envs)).to(device)
logprobs = torch.zeros((num_steps, num_envs)).to(device)
rewards = torch.zeros((num_steps, num_envs)).to(device)
dones = torch.zeros((num_steps, num_envs)).to(device)
values = torch.zeros((num_steps, num_envs)).to(device)

next_obs = torch.tensor([env.reset()[0] for env in envs]).to(device)
next_done = torch.zeros(num_envs).to(device)
losses = []
num_updates = -(-max_steps // (update_epochs * num_minibatches))
for update in range(1, num_updates + 1):
    # Annealing the rate if instructed to do so.
    frac = 1.0 - (update - 1.0) / num_updates
    optimizer.param_groups[0]["lr"] = frac * learning_rate

    for step in range(0, num_steps):
        obs[step] = next_obs
        dones[step] = next_done
        # ALGO LOGIC: action logic
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs)
            values[step] = value.flatten()
        actions[step] = action
        logprobs[step] = logprob
        # execute the game and log data.
        found = [env.step(a) for env, a in zip(envs, action.cpu().numpy().tolist())]
        rewards[step] = torch.tensor([one[1] for one in found]).to(device).view(-1)
        ended = [one[2] or one[3] for one in found]
        states = [env.reset()[0] if end else one[0] for env, one, end in zip(envs, found, ended)]
        next_obs, next_done = torch.tensor(states).to(device), torch.tensor(ended).to(device)

    # bootstrap value if not done
    with torch.no_grad():
        next_value = agent.get_value(next_obs).reshape(1, -1)
        advantages = torch.zeros_like(rewards).to(device)
        lastgaelam = 0
        for t in reversed(range(num_steps)):
            if t == num_steps - 1:
                nextnonterminal = 1.0 - next_done.double()
                nextvalues = next_value
            else:
                nextnonterminal = 1.0 - dones[t + 1]
                nextvalues = values[t + 1]
            delta = rewards[t] + gamma * nextvalues * nextnonterminal - values[t]
            advantages[t] = lastgaelam = delta + gamma * gae_lambda * nextnonterminal * lastgaelam
        returns = advantages + values

    # flatten the batch
    b_obs = obs.reshape((-1, 4))
    b_logprobs = logprobs.reshape(-1)
    b_actions = actions.reshape(-1)
    b_advantages = advantages.reshape(-1)
    b_returns = returns.reshape(-1)
    b_values = values.reshape(-1)

    # Optimizing the policy and value network
    for epoch in range(update_epochs):
        b_inds = torch.randperm(batch_size)
        for start in range(0, batch_size, minibatch_size):
            mb_inds = b_inds[start : start + minibatch_size]
            loss, approx_kl, clipfrac = train_step(
                b_obs[mb_inds], b_actions.long()[mb_inds], b_logprobs[mb_inds],
                b_advantages[mb_inds], b_returns[mb_inds], b_values[mb_inds],
            )
            losses.append(loss.item())
    if update % 5 == 0:
        print(f"update {update} loss {loss.item():.4f} kl {approx_kl.item():.4f} clipped {clipfrac.item():.3f}")
