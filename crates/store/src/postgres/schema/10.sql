-- Schema 10: what a version changed is found without a walk over all accounts, nodes and balances.

CREATE INDEX confidential_accounts_by_version ON confidential_accounts (version);
CREATE INDEX confidential_nodes_by_version ON confidential_nodes (version);
CREATE INDEX public_balances_by_version ON public_balances (version);
