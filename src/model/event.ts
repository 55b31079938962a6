/** The dataset of the ledger entries of a sink whose records have this dataset: `dpas.audit` gives `dpas.ledger`. */
export function ledgerDataset(dataset: string): string {
  return `${dataset.replace(/\.audit$/, '')}.ledger`;
}
