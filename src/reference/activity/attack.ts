/** Attacks of an employee on protected files: actions that are against the habits of the company. */
import type { SwitchValues } from '../switches.ts';
import type { Company, CompanyAction, CompanyFile } from './company.ts';

type Attack = Exclude<SwitchValues['attack'], 'none'>;

/** Employees before this one are never the attacker, so that the first names of a list are not. */
const firstAttacker = 42;

/** The actions, in their order. */
export function attackOn(company: Company, attack: Attack): CompanyAction[] {
  const attacker = company.employees.slice(firstAttacker).find(({ team, isOnShifts }) => !team.isFinance && !isOnShifts);
  if (!attacker) throw new Error('the company has too few employees');
  const act = (combination: CompanyAction['combination'], { id, name, owner }: CompanyFile): CompanyAction => {
    return { at: 0, combination, user: attacker, payload: { id, name, owner }, network: company.homeOf(attacker) };
  };
  const ofOthers = attacker.team.files.filter(({ owner }) => owner !== attacker);
  const strangers = company.teams.find(({ number }) => number === attacker.team.number + 1)?.files ?? [];
  const opened = ['Decrypt', 'AccessGranted', 'Success'] as const;
  switch (attack) {
    case 'harvest':
      return ofOthers.slice(-32).map((file) => act(opened, file));
    case 'weakened': {
      const files = ofOthers.slice(-15);
      return [...files.map((file) => act(['Audit', 'AccessWindow', 'Changed'], file)), ...files.slice(-5).map((file) => act(opened, file))];
    }
    case 'search':
      return strangers.slice(-8).map((file) => act(['Decrypt', 'AccessDenied', 'UserPayloadNoAccess'], file));
  }
}
